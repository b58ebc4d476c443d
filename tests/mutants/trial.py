"""Runs tests in forks of a process that has imported the libraries, because to import them takes longer than most
tests. Nothing of ``mt`` is imported before the fork: each run imports it anew, from its own copy of the repository."""

import importlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.util import cache_from_source
from multiprocessing import forkserver, util
from pathlib import Path
from types import ModuleType

import psutil
import pytest

from tests.mutants.sampling import Mutant

LIBRARIES = (
    "torch._dynamo torch.utils.tensorboard datasets matplotlib.pyplot hydra sacrebleu sentencepiece sentencex "
    "pydantic.type_adapter pydantic.fields safetensors.torch jinja2 regex ctranslate2 re2 psutil tqdm.contrib.logging "
    "hypothesis _hypothesis_pytestplugin xdist.plugin"
)
PATIENCE = 20.0
"""Seconds that any test may take. It may also take five times as long as usual."""


def import_libraries() -> None:
    """Imports what ``mt`` and its tests need. This process must compute nothing with them: threads do not survive a
    fork."""
    os.environ["OMP_NUM_THREADS"] = "1"
    for name in LIBRARIES.split():
        with suppress(ImportError):
            importlib.import_module(name)


class Bench:
    """A copy of the repository, in which one mutant after another is tried.

    Args:
        root: The repository. Its files are copied that git tracks or would track.
        copy: A folder for the copy; what is there is removed.
        seconds: How long each test usually takes.
    """

    def __init__(self, root: Path, copy: Path, seconds: Mapping[str, float]) -> None:
        self._root, self._copy, self._seconds = root, copy, seconds
        self._diary = copy / "running.txt"
        self._sound: dict[str, bool] = {}
        shutil.rmtree(copy, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, text=True, capture_output=True
        )
        for name in listed.stdout.splitlines():
            if (root / name).is_file():
                (copy / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, copy / name)

    def attempt(self, mutant: Mutant, tests: Sequence[str]) -> tuple[bool, str]:
        """Returns whether the tests notice the mutant, and the first that does. A test that fails here without the
        mutant, too, does not count."""
        module = self._copy / mutant.module
        while tests:
            module.write_text(mutant.code, encoding="utf-8")
            status = self._run([*tests, "-x"])
            last = self._diary.read_text()
            shutil.copy2(self._root / mutant.module, module)
            # Python compares only a file's size and its time in seconds with those of the compiled one.
            Path(cache_from_source(str(module))).unlink(missing_ok=True)
            if status == 0:
                return False, ""
            if status == pytest.ExitCode.USAGE_ERROR and not last:  # the mutant has changed the name of a test
                tests = list(dict.fromkeys(test.partition("::")[0] for test in tests))
                continue
            if last not in self._sound:
                self._sound[last] = self._run([last or tests[0], *([] if "::" in last else ["--collect-only"])]) == 0
            if self._sound[last] or last not in tests:
                return self._sound[last], last or "ended while it collected tests"
            tests = [test for test in tests if test != last]
        return False, "no test executes this line"

    def _run(self, words: Sequence[str]) -> int:
        """Returns pytest's status. The last test that it ran is then in the diary."""
        self._diary.write_text("")
        child = os.fork()
        if not child:
            try:
                _be_pytest(self._root, self._copy, words, self._diary)
            finally:
                os._exit(70)
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            allowed = PATIENCE + 5 * self._seconds.get(self._diary.read_text(), 6.0)
            if time.time() - self._diary.stat().st_mtime > allowed:
                for process in [*psutil.Process(child).children(recursive=True), psutil.Process(child)]:
                    with suppress(psutil.Error):
                        process.kill()
            time.sleep(0.02)


class _Diary:
    """A plugin of pytest that writes down which test is running, or which file cannot be collected."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._path.write_text(nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._path.write_text(report.nodeid)


def _be_pytest(root: Path, copy: Path, words: Sequence[str], diary: Path) -> None:
    """Does in this process what ``python -m pytest`` would do in the copy, whose modules come before all others."""
    os.chdir(copy)
    for stream, path in enumerate((os.devnull, "pytest.log", "pytest.log")):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | (os.O_TRUNC if stream == 1 else os.O_APPEND)), stream)
    sys.path[:] = [str(copy), *(folder for folder in sys.path if folder and Path(folder) != root)]
    os.environ["PYTHONPATH"] = str(copy)
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    sys.modules["__main__"] = ModuleType("__main__")  # the processes of multiprocessing would import this one
    _fork_the_fork_server()
    importlib.import_module("tests.preloaded")._start_server()
    status = pytest.main(["-q", "--no-header", "-p", "no:cacheprovider", *words], plugins=[_Diary(diary)])
    sys.stdout.flush()
    os._exit(status)


def _fork_the_fork_server() -> None:
    """Makes multiprocessing's fork server, of which ``tests.preloaded`` makes commands, a fork of this process."""
    spawn = util.spawnv_passfds

    def spawn_or_fork(path: bytes, args: Sequence[str], descriptors: Sequence[int]) -> int:
        if "forkserver" not in args[-1]:
            return spawn(path, args, descriptors)
        if child := os.fork():
            return child
        try:
            kept = sorted({0, 1, 2, *descriptors})
            for before, after in zip(kept, [*kept[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
                os.closerange(before + 1, after)
            forkserver._forkserver._lock = threading.Lock()  # it is taken while the server starts
            exec(args[-1], {})
        finally:
            os._exit(0)

    util.spawnv_passfds = spawn_or_fork
