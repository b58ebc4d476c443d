"""What became of the faults of one kind."""

from dataclasses import dataclass, field


@dataclass
class Outcome:
    fault: str
    injected: int = 0
    survived: int = 0
    lost: list[str] = field(default_factory=list)
    """What was lost, one line for each fault that was not survived."""
    figures: str = ""
    """What was measured on the way."""

    def judge(self, troubles: list[str]) -> None:
        """One more was injected; it is survived if nothing is wrong."""
        self.injected += 1
        self.survived += not troubles
        self.lost += troubles
