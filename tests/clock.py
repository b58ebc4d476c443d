"""A clock that stands still while nothing moves it, in place of the ``time`` module: what is timed can then be stated
exactly."""


class Clock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def perf_counter(self) -> float:
        return self.seconds

    monotonic = perf_counter
