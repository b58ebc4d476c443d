"""Whatever comes together, is cancelled or fails: each request gets the answers to its own items, or none."""

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
    """Works on items (name, step at which it fails, lengths of its sources), and keeps the batches of searches."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []
        self.begun = 0
        self.go = threading.Event()
        self.go.set()

    def segment(self, item):
        name, fails, lengths = item
        if fails == "cut":
            raise ValueError(name)
        return item, [[name, number, fails] + [0] * (length - 3) for number, length in enumerate(lengths)]

    def search(self, sources, works, before_step: Callable[[], None]):
        self.begun += 1
        self.go.wait(30)
        before_step()
        self.batches.append([f"{name}.{number}" for name, number, *_ in sources])
        for name, _, fails, *_ in sources:
            if fails == "search":
                raise ValueError(name)
        return [f"{name}.{number}" for name, number, *_ in sources]

    def finish(self, item, found):
        name, fails, lengths = item
        assert found == [f"{name}.{number}" for number in range(len(lengths))]
        if fails == "finish":
            raise ValueError(name)
        return name


class BatcherOf(Batcher):
    def __init__(self, work, *settings, **others):
        super().__init__(*settings, **others)
        self.work = work


async def ask(batcher, names, size=1, fails="", lengths=(3,)):
    return await batcher.answer(batcher.work, [(name, fails, lengths) for name in names], [size] * len(names))


def converse(talk, threads=1, most_items=1000):
    """Run ``talk(work, batcher)`` while the work stands still until ``work.go`` is set, and return the work."""
    work = Recorder()
    work.go.clear()
    batcher = BatcherOf(work, most_items, MAX_TOKENS, threads)
    asyncio.run(talk(work, batcher))
    batcher.close()
    return work


async def until(condition):
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
            st.sampled_from(["stays", "stays", "leaves at once", "leaves soon", "cut", "search", "finish"]),
        ),
        max_size=40,
    ),
)
def test_every_request_gets_the_answers_to_its_own_items(threads, requests):
    async def client(number, count, size, lengths, what):
        names = [f"{number}.{place}" for place in range(count)]
        items = [(name, "", lengths) for name in names]
        fails = what if what in ("cut", "search", "finish") and (lengths or what != "search") else ""
        items[count // 2] = (names[count // 2], fails, lengths)
        asking = asyncio.create_task(batcher.answer(batcher.work, items, [size] * count))
        if what.startswith("leaves"):
            await asyncio.sleep(0 if what == "leaves at once" else 0.0005)
            asking.cancel()
        is_too_long = count * sum(lengths) > MAX_TOKENS
        try:
            assert await asking == names
            assert not fails and not is_too_long
        except asyncio.CancelledError:
            assert what.startswith("leaves")
        except ValueError as error:
            assert fails and str(error) == names[count // 2]
        except TooManyTokensError:
            assert is_too_long

    async def all_of_them():
        await asyncio.gather(*(client(number, *request) for number, request in enumerate(requests)))
        await asyncio.to_thread(batcher.close)

    batcher = BatcherOf(Recorder(), 1000, MAX_TOKENS, threads)
    asyncio.run(all_of_them())
    assert not batcher.waiting


def test_what_waits_together_is_one_batch_and_long_requests_take_turns():
    long = {"size": MAX_SHORT_CHARACTERS + 1, "lengths": (MAX_BATCH_TOKENS // 4,) * 3}

    async def talk(work, batcher):
        first = asyncio.create_task(ask(batcher, ["first"]))
        await until(lambda: work.begun)  # it did not wait for others
        others = [asyncio.create_task(ask(batcher, [name], **long)) for name in ("a", "b")]
        others += [asyncio.create_task(ask(batcher, [name])) for name in ("c", "d")]
        await until(lambda: batcher.waiting == 4)
        work.go.set()
        await asyncio.gather(first, *others)

    work = converse(talk)
    assert sorted(work.batches) == sorted([["first.0"], ["c.0", "d.0"], ["a.0", "b.0", "a.1", "b.1"], ["a.2", "b.2"]])


def test_a_short_request_is_answered_between_two_steps_of_a_long_one():
    async def talk(work, batcher):
        long = asyncio.create_task(ask(batcher, ["long"], MAX_SHORT_CHARACTERS + 1))
        await until(lambda: work.begun)
        short = asyncio.create_task(ask(batcher, ["short"]))
        await until(lambda: batcher.waiting)
        work.go.set()
        assert [await short, await long] == [["short"], ["long"]]

    work = converse(talk)
    assert work.batches == [["short.0"], ["long.0"]]


def test_idle_lanes_share_a_batch():
    async def talk(work, batcher):
        answer = asyncio.create_task(ask(batcher, ["a"], lengths=(50,) * 8))
        await until(lambda: work.begun == 2)
        work.go.set()
        assert await answer == ["a"]

    work = converse(talk, threads=2)
    assert sorted(work.batches) == [[f"a.{n}" for n in range(4)], [f"a.{n}" for n in range(4, 8)]]


def test_a_request_with_too_many_tokens_is_refused_before_most_of_it_is_searched():
    work = Recorder()
    batcher = BatcherOf(work, 1000, MAX_TOKENS, threads=1)
    with pytest.raises(TooManyTokensError, match=f"token limit \\({MAX_TOKENS}\\)"):
        asyncio.run(ask(batcher, [str(n) for n in range(10)], MAX_SHORT_CHARACTERS, lengths=(MAX_TOKENS // 9,)))
    batcher.close()
    assert len(work.batches) <= 1


def test_a_full_queue_refuses_at_once_and_takes_again_when_there_is_room():
    async def talk(work, batcher):
        running = asyncio.create_task(ask(batcher, ["a"]))
        await until(lambda: work.begun)
        waiting = [asyncio.create_task(ask(batcher, names)) for names in (["b", "c"], ["d"])]
        await until(lambda: batcher.waiting == 2)
        with pytest.raises(OverloadedError):
            await ask(batcher, ["e"])  # at once: the work stands still
        assert work.begun == 1
        waiting[0].cancel()
        await asyncio.gather(waiting[0], return_exceptions=True)
        after = asyncio.create_task(ask(batcher, ["f"]))
        await until(lambda: batcher.waiting == 2)
        work.go.set()
        assert await asyncio.gather(running, waiting[1], after) == [["a"], ["d"], ["f"]]

    work = converse(talk, most_items=2)
    assert sorted(source for batch in work.batches for source in batch) == ["a.0", "d.0", "f.0"]


def test_closing_answers_what_waits_and_refuses_what_comes_later():
    async def talk(work, batcher):
        first = asyncio.create_task(ask(batcher, ["first"]))
        await until(lambda: work.begun)
        waiting = [asyncio.create_task(ask(batcher, [str(number)], MAX_SHORT_CHARACTERS + 1)) for number in range(5)]
        await until(lambda: batcher.waiting == 5)
        closing = asyncio.create_task(asyncio.to_thread(batcher.close))
        await until(lambda: batcher._closing)
        with pytest.raises(OverloadedError):
            await ask(batcher, ["late"])
        work.go.set()
        assert await asyncio.gather(*waiting) == [[str(number)] for number in range(5)]
        assert await first == ["first"]
        await closing

    converse(talk)
