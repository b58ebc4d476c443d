"""Runs a command: ``python -m mt`` lists the commands, and ``python -m mt COMMAND --help`` lists its settings."""

from mt.cli.main import main

if __name__ == "__main__":
    main()
