"""``parallel_map`` and pools of processes: order, errors, and the end of processes."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from mt.core.errors import InputError, RunError
from mt.data.parallel import ProcessPool, parallel_map
from tests.processes import pool_processes


def doubled(number):
    print("printed by a library")
    time.sleep(0.02)  # so that no process can do all
    return os.getpid(), 2 * number


def killed(number):
    os.kill(os.getpid(), signal.SIGKILL)
    return number


def failing(number):
    return 1 // (number - 7)


@pytest.fixture(autouse=True)
def two_cores(monkeypatch):
    monkeypatch.setattr("mt.data.parallel.available_cores", lambda: 2)
    monkeypatch.setattr("mt.data.parallel.FIRST_ITEMS", 3)
    before = pool_processes()
    yield
    assert pool_processes() <= before


def test_parallel_map_keeps_order():
    results = list(parallel_map(doubled, iter(range(60))))
    assert [result for _, result in results] == [2 * number for number in range(60)]
    processes = {process for process, _ in results[3:]}
    assert len(processes) == 2
    assert {process for process, _ in results[:3]} == {os.getpid()}
    assert os.getpid() not in processes


@pytest.mark.parametrize("count", [0, 1, 3])
def test_parallel_map_of_few_items_starts_no_process(count):
    assert [process for process, _ in parallel_map(doubled, range(count))] == [os.getpid()] * count


def test_parallel_map_reads_few_items_ahead():
    taken = []

    def items():
        for number in range(50):
            taken.append(number)
            yield number

    for done, _ in enumerate(parallel_map(doubled, items())):
        assert len(taken) <= done + 7


def test_parallel_map_raises_error_of_items():
    def items():
        yield from range(20)
        raise InputError("line 21 is broken")

    with pytest.raises(InputError, match="line 21"):
        list(parallel_map(doubled, items()))


def test_closed_parallel_map_leaves_no_process():
    results = parallel_map(doubled, range(1000))
    assert [next(results)[1] for _ in range(10)] == list(range(0, 20, 2))
    results.close()  # type: ignore[attr-defined]


def test_parallel_map_reports_dead_process():
    with pytest.raises(RunError, match=r"a process that prepared the data has ended; .* run out of memory"):
        list(parallel_map(killed_later, range(20)))
    with pytest.raises(ZeroDivisionError):  # a bug of ours
        list(parallel_map(failing, range(20)))


def test_pool_submit_reports_dead_process():
    pool = ProcessPool(killed, 1)
    with pytest.raises(RunError):
        pool.submit(4)()
    with pytest.raises(RunError, match="has ended"):
        pool.submit(4)
    pool.close()


def test_closed_pool_starts_new_processes():
    others = pool_processes()  # of the tests before
    pool = ProcessPool(doubled, 2)
    assert [result()[1] for result in [pool.submit(number) for number in range(9)]] == list(range(0, 18, 2))
    pool.close()
    assert pool_processes() <= others
    process, result = pool.submit(4)()
    assert (process != os.getpid(), result) == (True, 8)
    pool.close()
    pool.close()


ENDLESS = """
import signal
from itertools import count
from mt.data import parallel
from tests.data.test_parallel import slow
parallel.available_cores = lambda: 2
signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background inherit an ignored one
for process in parallel.parallel_map(slow, count()):
    print(process, flush=True)
"""


def slow(number):
    time.sleep(0.02)
    return os.getpid()


@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_parallel_map_processes_end_with_parent(sent):
    """The signal is sent to the process group, as by Ctrl-C."""
    program = subprocess.Popen(
        [sys.executable, "-c", ENDLESS],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert program.stdout
    try:
        process_ids = {program.pid}
        while len(process_ids) < 3:
            process_ids.add(int(program.stdout.readline()))
        others = [psutil.Process(process) for process in process_ids if process != program.pid]
        os.killpg(program.pid, sent)
        _, errors = program.communicate(timeout=60)
    finally:
        program.kill()
    assert not psutil.wait_procs(others, timeout=30)[1]
    assert errors.count("Traceback") == (sent == signal.SIGINT)  # KeyboardInterrupt


def killed_later(number):
    return number if number < 3 else killed(number)


def test_pool_processes_import_neither_torch_nor_datasets():
    program = "import sys, mt.data.pairs, mt.data.samples; print({'torch', 'datasets'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "set()\n"
