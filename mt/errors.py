"""The ways a command ends early on purpose. Anything else that escapes is a bug of ours."""


class InputError(Exception):
    """The user's input or config is wrong: one message that names what and how to mend it (exit code 2)."""


class RunError(Exception):
    """Work that was rightly asked for could not go on: disk full, diverged, out of memory (exit code 1)."""


class Interrupted(Exception):
    """SIGINT or SIGTERM arrived and all state is saved (exit code 130 or 143)."""

    def __init__(self, signal_number: int, message: str) -> None:
        super().__init__(message)
        self.signal_number = signal_number
