"""``python -m mt.config`` prints docs/settings.md."""

from mt.cli.reference import settings_page

if __name__ == "__main__":
    print(settings_page(), end="")
