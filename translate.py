"""Translates text line by line: ``python translate.py --help`` tells what can be set."""

from mt.cli.main import translate

if __name__ == "__main__":
    translate()
