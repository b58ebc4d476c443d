"""Model folders of released formats."""

from pathlib import Path

HERE = Path(__file__).parent
FIXTURES = HERE / "1.0.0"
