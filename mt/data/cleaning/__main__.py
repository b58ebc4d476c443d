"""Show and write the pairs that cleaning drops. ``python -m mt.data.cleaning --help`` lists the settings."""

from mt.cli.entry_points import clean

if __name__ == "__main__":
    clean()
