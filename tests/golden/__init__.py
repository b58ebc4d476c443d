"""Compare today's translations with recorded ones, without a trained model: ``python -m tests.golden``."""
