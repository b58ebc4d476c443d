"""Batcher: requests that arrive together, are canceled or fail get the answers to their own items, or none."""

import asyncio
import threading
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.serving.batching import (
    MAX_BATCH_TOKENS,
    MAX_SEGMENTED_CHARACTERS,
    MAX_SHORT_CHARACTERS,
    Batcher,
    OverloadedError,
    TooManyTokensError,
)

MAX_TOKENS = 5 * MAX_BATCH_TOKENS


class Recorder:
    """Processes items (name, failing step, lengths of the sources), and records the batches of searches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.searches = 0
        self.may_search = threading.Event()
        self.may_search.set()

    def segment(self, item):
        name, fails, lengths = item
        if fails == "segment":
            raise ValueError(name)
        return item, [[name, number, fails] + [0] * (length - 3) for number, length in enumerate(lengths)]

    def search(self, sources, works, before_step: Callable[[], None]):
        self.searches += 1
        self.may_search.wait(30)
        before_step()
        self.batches.append([f"{name}.{number}" for name, number, *_ in sources])
        for name, _, fails, *_ in sources:
            if fails == "search":
                raise ValueError(name)
        return [f"{name}.{number}" for name, number, *_ in sources]

    def finish(self, item, results):
        name, fails, lengths = item
        assert results == [f"{name}.{number}" for number in range(len(lengths))]
        if fails == "finish":
            raise ValueError(name)
        return name


def ask(batcher, work, names, size=1, lengths=(3,)):
    """Start to ask for items. Return the task."""
    items = [(name, "", lengths) for name in names]
    return asyncio.create_task(batcher.answer(work, items, [size] * len(names)))


def run_with_paused_work(talk, threads=1, capacity=1000):
    """Run ``talk(work, batcher)``, and return the work. Searches wait until ``work.may_search`` is set."""
    work = Recorder()
    work.may_search.clear()
    batcher = Batcher(capacity, MAX_TOKENS, threads)
    asyncio.run(talk(work, batcher))
    batcher.close()
    return work


async def wait_until(condition):
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


@given(
    st.integers(1, 3),  # threads
    st.lists(
        st.tuples(
            st.integers(1, 6),  # items
            st.sampled_from([1, MAX_SHORT_CHARACTERS // 3, MAX_SEGMENTED_CHARACTERS + 1]),  # the size of each
            st.lists(st.sampled_from([3, MAX_BATCH_TOKENS // 3, MAX_BATCH_TOKENS + 1]), max_size=4),
            st.sampled_from(["stays", "stays", "leaves at once", "leaves soon", "segment", "search", "finish"]),
        ),
        max_size=40,
    ),
)
def test_answer_returns_results_of_own_items(threads, requests):
    async def client(number, count, size, lengths, behavior):
        names = [f"{number}.{item}" for item in range(count)]
        items = [(name, "", lengths) for name in names]
        fails = behavior if behavior in ("segment", "search", "finish") and (lengths or behavior != "search") else ""
        items[count // 2] = (names[count // 2], fails, lengths)
        asking = asyncio.create_task(batcher.answer(work, items, [size] * count))
        if behavior.startswith("leaves"):
            await asyncio.sleep(0 if behavior == "leaves at once" else 0.0005)
            asking.cancel()
        is_too_long = count * sum(lengths) > MAX_TOKENS
        try:
            assert await asking == names
            assert not fails and not is_too_long
        except asyncio.CancelledError:
            assert behavior.startswith("leaves")
        except ValueError as error:
            assert fails and str(error) == names[count // 2]
        except TooManyTokensError:
            assert is_too_long

    async def run_clients():
        await asyncio.gather(*(client(number, *request) for number, request in enumerate(requests)))
        await asyncio.to_thread(batcher.close)

    work, batcher = Recorder(), Batcher(1000, MAX_TOKENS, threads)
    asyncio.run(run_clients())
    assert not batcher.waiting


def test_short_requests_share_a_batch_and_long_ones_alternate():
    long = {"size": MAX_SHORT_CHARACTERS + 1, "lengths": (MAX_BATCH_TOKENS // 4,) * 3}

    async def talk(work, batcher):
        first = ask(batcher, work, ["first"])
        await wait_until(lambda: work.searches)  # without waiting for others
        others = [ask(batcher, work, [name], **long) for name in ("a", "b")]
        others += [ask(batcher, work, [name]) for name in ("c", "d")]
        await wait_until(lambda: batcher.waiting == 4)
        work.may_search.set()
        await asyncio.gather(first, *others)

    work = run_with_paused_work(talk)
    assert sorted(work.batches) == sorted([["first.0"], ["c.0", "d.0"], ["a.0", "b.0", "a.1", "b.1"], ["a.2", "b.2"]])


def test_short_request_is_answered_during_long_search():
    async def talk(work, batcher):
        long = ask(batcher, work, ["long"], MAX_SHORT_CHARACTERS + 1)
        await wait_until(lambda: work.searches)
        short = ask(batcher, work, ["short"])
        await wait_until(lambda: batcher.waiting)
        work.may_search.set()
        assert [await short, await long] == [["short"], ["long"]]

    work = run_with_paused_work(talk)
    assert work.batches == [["short.0"], ["long.0"]]


def test_idle_threads_share_sources():
    async def talk(work, batcher):
        answer = ask(batcher, work, ["a"], lengths=(50,) * 8)
        await wait_until(lambda: work.searches == 2)
        work.may_search.set()
        assert await answer == ["a"]

    work = run_with_paused_work(talk, threads=2)
    assert sorted(work.batches) == [[f"a.{n}" for n in range(4)], [f"a.{n}" for n in range(4, 8)]]


def test_request_with_too_many_tokens_is_refused_early():
    work = Recorder()
    batcher = Batcher(1000, MAX_TOKENS, threads=1)
    with pytest.raises(TooManyTokensError, match=f"token limit \\({MAX_TOKENS}\\)"):
        asyncio.run(batcher.answer(work, [("a", "", (MAX_TOKENS // 9,))] * 10, [MAX_SHORT_CHARACTERS] * 10))
    batcher.close()
    assert len(work.batches) <= 1


def test_full_queue_refuses_requests():
    async def talk(work, batcher):
        running = ask(batcher, work, ["a"])
        await wait_until(lambda: work.searches)
        waiting = [ask(batcher, work, names) for names in (["b", "c"], ["d"])]
        await wait_until(lambda: batcher.waiting == 2)
        with pytest.raises(OverloadedError):
            await ask(batcher, work, ["e"])
        assert work.searches == 1
        waiting[0].cancel()
        await asyncio.gather(waiting[0], return_exceptions=True)
        after = ask(batcher, work, ["f"])
        await wait_until(lambda: batcher.waiting == 2)
        work.may_search.set()
        assert await asyncio.gather(running, waiting[1], after) == [["a"], ["d"], ["f"]]

    work = run_with_paused_work(talk, capacity=2)
    assert sorted(source for batch in work.batches for source in batch) == ["a.0", "d.0", "f.0"]


def test_close_answers_waiting_requests():
    async def talk(work, batcher):
        first = ask(batcher, work, ["first"])
        await wait_until(lambda: work.searches)
        waiting = ask(batcher, work, ["waiting"])
        await wait_until(lambda: batcher.waiting)
        closing = asyncio.create_task(asyncio.to_thread(batcher.close))
        await wait_until(lambda: batcher._closing)
        with pytest.raises(OverloadedError):
            await ask(batcher, work, ["late"])
        work.may_search.set()
        assert await asyncio.gather(first, waiting) == [["first"], ["waiting"]]
        await closing

    run_with_paused_work(talk)
