"""Which tests execute which lines, in whatever process: those can see a mistake there."""

import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import coverage


@dataclass
class Sight:
    """What one run of the whole suite with coverage's contexts has shown."""

    lines: dict[str, dict[int, set[str]]]
    """For each module the tests that execute each line."""
    seconds: dict[str, float]
    """For each test how long it takes."""
    new: set[str]
    """Tests that have been written since then: they may see every line."""

    def of(self, module: str, line: int) -> list[str]:
        """Returns the tests that may see a mistake in a line, the likeliest and quickest first: those of the file that
        is named like the module, whose processes coverage does not follow, then all that execute the line, beginning
        with those of its folder. A line that runs at import concerns every test of its module."""
        there = self.lines.get(module, {})
        beside = f"tests/{'/'.join(Path(module).parts[1:-1])}/"
        own = tuple(f"{folder}test_{Path(module).stem}.py::" for folder in (beside, "tests/"))
        tests = there.get(line) or set().union(*there.values())
        tests = tests | self.new | {test for test in self.seconds if test.startswith(own)}

        def rank(test: str) -> tuple[bool, bool, float]:
            return not test.startswith(own), not test.startswith(beside), self.seconds[test]

        return sorted(tests & self.seconds.keys(), key=rank)


def look(root: Path, work: Path) -> Sight:
    """Runs the suite once and returns what it shows; if ``work`` already holds that, only reads it."""
    data, durations = work / "coverage", work / "durations.xml"
    here = {**os.environ, "PYTHONPATH": str(root)}  # the environment may belong to another checkout
    if not durations.exists():
        work.mkdir(exist_ok=True)
        rc = work / "measured.ini"
        rc.write_text(
            f"[run]\nsource = {root / 'mt'}\ndata_file = {data}\nparallel = true\npatch = subprocess, fork, _exit\n"
        )
        measured = [sys.executable, "-m", "coverage", "run", f"--rcfile={rc}", "-m"]
        parallel = ["--numprocesses=auto", "--maxprocesses=4", "--dist=loadfile", f"--junitxml={durations}"]
        subprocess.run([*measured, "pytest", "-q", "-p", "tests.mutants.contexts", *parallel], cwd=root, env=here)
        subprocess.run([sys.executable, "-m", "coverage", "combine", f"--rcfile={rc}", "--quiet"], cwd=root, check=True)
    seconds = dict(_durations(ElementTree.parse(durations)))
    of_file = defaultdict(set)
    for test in seconds:
        of_file[test.partition("::")[0]].add(test)
    found = coverage.CoverageData(str(data))
    found.read()
    lines: dict[str, dict[int, set[str]]] = {}
    for path in found.measured_files():
        contexts = found.contexts_by_lineno(path)
        lines[str(Path(path).relative_to(root))] = {
            line: set().union(*(_tests(name, of_file) for name in names)) for line, names in contexts.items()
        }
    collect = [sys.executable, "-m", "pytest", "--collect-only", "-q"]
    listed = subprocess.run(collect, cwd=root, env=here, text=True, stdout=subprocess.PIPE).stdout.splitlines()
    today = {line for line in listed if "::" in line}
    return Sight(lines, {test: seconds.get(test, 0.0) for test in today}, today - seconds.keys())


def _tests(context: str, of_file: dict[str, set[str]]) -> Iterable[str]:
    """Returns the tests of a context. What a fixture executes counts for the first test that uses it, so all tests of
    its file may see it."""
    found = re.fullmatch(r"(tests/.*?::.*?) \((\w+)\)", context)
    if not found:
        return ()
    return of_file[found[1].partition("::")[0]] if found[2] == "setup" else (found[1],)


def _durations(report: ElementTree.ElementTree) -> Iterable[tuple[str, float]]:
    for case in report.iter("testcase"):
        *folders, last = case.attrib["classname"].split(".")
        names = [last] if not last.startswith("Test") else [folders.pop(), last]
        file = "/".join([*folders, names[0]]) + ".py"
        yield "::".join([file, *names[1:], case.attrib["name"]]), float(case.attrib["time"])
