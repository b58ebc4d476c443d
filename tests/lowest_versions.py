"""Prints the lowest version that pyproject.toml allows of each direct dependency but torch, as pip's constraints.

torch is the one of constraints.txt: older ones differ by machine and take gigabytes.
"""

import re
import tomllib
from pathlib import Path

RUNTIME_EXTRAS = ("documents", "fast", "hub", "reports")
PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def lowest_versions() -> list[str]:
    """Return lines such as ``numpy==2.0``, without the developers' tools."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *(line for name in RUNTIME_EXTRAS for line in extras[name])]
    bounds = [re.match(r"([\w.-]+)>=([\w.]+)", requirement) for requirement in needed]
    assert all(bounds), needed
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound and bound[1] != "torch"]


if __name__ == "__main__":
    print("\n".join(lowest_versions()))
