"""Serves models to other programs and on a page. ``python -m mt.serving --help`` lists the settings."""

from mt.cli.entry_points import serve

if __name__ == "__main__":
    serve()
