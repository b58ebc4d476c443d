"""Names of the compared systems."""

import os
import re
from collections.abc import Sequence


def name_systems(names: Sequence[list[str]], paths: Sequence[list[str]], repeats: Sequence[str]) -> list[str]:
    """Return the shortest distinct names of the systems.

    Args:
        names: For each system, the names of its outputs.
        paths: For each system, their folders or files.
        repeats: For each system, the noun for its outputs.
    """
    full = [", ".join(system) for system in paths]
    candidates = (
        [common_name(system, noun) for system, noun in zip(names, repeats, strict=True)],
        [", ".join(system) for system in names],
        full,
        [f"{name} ({number})" for number, name in enumerate(full, 1)],
    )
    return next(distinct for distinct in candidates if len(set(distinct)) == len(distinct))


def common_name(names: Sequence[str], repeats: str) -> str:
    """Return a name for the runs or files of one system.

    It is the common beginning of their names, cut at a separator, with their number. If the names have no common
    beginning, all of them are listed.
    """
    if len(names) == 1:
        return names[0]
    prefix = os.path.commonprefix(list(names))
    if any(re.match(r"[^-_=. ]", name[len(prefix) :]) for name in names):
        prefix = re.sub(r"[^-_=. ]*$", "", prefix)  # the names diverge inside a word: cut back to its beginning
    stem = prefix.rstrip("-_=. ").removesuffix("seed").rstrip("-_=. ")
    return f"{stem} ({len(names)} {repeats})" if stem else ", ".join(names)
