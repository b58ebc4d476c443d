"""Names of the compared systems."""

import re
from collections.abc import Sequence

SEED_SUFFIX = re.compile(r"(^|[-_=. ]+)(seed)?[-_=. ]*\d+$")


def name_systems(names: Sequence[Sequence[str]], repeats: Sequence[str]) -> list[str]:
    """Return distinct names of the systems, numbered if necessary.

    Args:
        names: For each system, the names of its outputs.
        repeats: For each system, the noun for its outputs.
    """
    common = [common_name(system, noun) for system, noun in zip(names, repeats, strict=True)]
    if len(set(common)) == len(common):
        return common
    return [f"{name} [{number}]" for number, name in enumerate(common, 1)]


def common_name(names: Sequence[str], repeats: str) -> str:
    """Return a name for the runs or files of one system: all names, or their common part without the seeds."""
    if len(names) == 1:
        return names[0]
    stems = {SEED_SUFFIX.sub("", name) for name in names}
    return f"{stems.pop()} ({len(names)} {repeats})" if len(stems) == 1 and "" not in stems else ", ".join(names)
