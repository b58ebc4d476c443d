"""Names of the compared systems in a report."""

import re
from collections.abc import Sequence

SEED_SUFFIX = re.compile(r"(^|[-_=. ]+)(seed)?[-_=. ]*\d+$")
"""The seed at the end of a run's name: ``-seed2``, ``_3``."""


def name_systems(names: Sequence[Sequence[str]], output_nouns: Sequence[str]) -> list[str]:
    """Return a name for each system, by ``common_name``. If two systems would get the same name, all are numbered:
    ``demo [1]``, ``demo [2]``.

    Args:
        names: For each system, the names of its runs or files.
        output_nouns: For each system, "seeds" or "outputs".
    """
    common = [common_name(system, noun) for system, noun in zip(names, output_nouns, strict=True)]
    if len(set(common)) == len(common):
        return common
    return [f"{name} [{number}]" for number, name in enumerate(common, 1)]


def common_name(names: Sequence[str], output_noun: str) -> str:
    """Return a name for one system, given the names of its runs or files.

    Names that differ only in the seed at their end become ``demo (3 seeds)``, with ``output_noun`` as the noun. Other
    names are joined by commas.
    """
    if len(names) == 1:
        return names[0]
    stems = {SEED_SUFFIX.sub("", name) for name in names}
    return f"{stems.pop()} ({len(names)} {output_noun})" if len(stems) == 1 and "" not in stems else ", ".join(names)
