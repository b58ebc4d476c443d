"""Makes training pairs from existing runs. ``python -m mt.synthesis --help`` lists the settings."""

from mt.cli.entry_points import synthesise

if __name__ == "__main__":
    synthesise()
