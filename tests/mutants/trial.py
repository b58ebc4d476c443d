"""Runs tests in a copy of the repository that has one mistake in it."""

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.mutants.sampling import Mutant

START_SECONDS = 30.0
"""Time to import the libraries. Tests may then take five times as long as usual."""
UNKNOWN_SECONDS = 6.0
"""Expected time of a new test."""


class Bench:
    """A copy of the repository, in which one mutant after another is tried.

    Args:
        root: The repository. Its files are copied that git tracks or would track.
        copy: A folder for the copy; what is there is removed.
        seconds: How long each test usually takes.
    """

    def __init__(self, root: Path, copy: Path, seconds: Mapping[str, float]) -> None:
        self._root, self._copy, self._seconds = root, copy, seconds
        self._passes_unchanged: dict[str, bool] = {}
        shutil.rmtree(copy, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, text=True, capture_output=True
        )
        for name in listed.stdout.splitlines():
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, copy / name)

    def attempt(self, mutant: Mutant, tests: Sequence[str]) -> tuple[bool, str]:
        """Return whether the tests notice the mutant, and the first that does.

        A test that fails here without the mutant, too, does not count.
        """
        module = self._copy / mutant.module
        while tests:
            module.write_text(mutant.code, encoding="utf-8")
            failure = self._first_failure(tests)
            shutil.copy2(self._root / mutant.module, module)
            if failure is None:
                return False, ""
            if failure not in self._passes_unchanged:
                self._passes_unchanged[failure] = failure not in tests or self._first_failure([failure]) is None
            if self._passes_unchanged[failure]:
                return True, failure
            tests = [test for test in tests if test != failure]
        return False, "no test executes this line"

    def _first_failure(self, tests: Sequence[str]) -> str | None:
        """Return the first test that fails, or how else pytest ended, or None if all pass."""
        limit = START_SECONDS + 5 * sum(self._seconds.get(test, UNKNOWN_SECONDS) for test in tests)
        options = ["-q", "-x", "--no-header", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
        with subprocess.Popen(
            [sys.executable, "-m", "pytest", *options, *tests],
            cwd=self._copy,
            env={**os.environ, "PYTHONPATH": str(self._copy), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                return f"still running after {limit:.0f} s"
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)  # and what the tests started
        if process.returncode == pytest.ExitCode.USAGE_ERROR and any("::" in test for test in tests):
            # The mutant may have changed the name of a test.
            return self._first_failure(list(dict.fromkeys(test.partition("::")[0] for test in tests)))
        if process.returncode == 0:
            return None
        failed = re.search(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", output, re.MULTILINE)
        return failed[1] if failed else f"pytest ended with {process.returncode}"
