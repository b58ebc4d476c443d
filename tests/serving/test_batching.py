"""Whatever comes together, is cancelled or fails: each request gets the answers to its own items, or none."""

import asyncio
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mt.serving.batching import BATCH_SIZE, Batcher, Overloaded

POISON = "poison"


class Recorder:
    """Answers an item by its kind and itself, fails where a batch holds POISON, and keeps the batches."""

    def __init__(self):
        self.batches = []
        self.begun = 0
        self.go = threading.Event()
        self.go.set()

    def __call__(self, kind, items):
        self.begun += 1
        self.go.wait(30)
        self.batches.append((kind, items))
        if POISON in items:
            raise ValueError(POISON)
        return [f"{kind}:{item}" for item in items]


async def ask(batcher, kind, items, size=1):
    return await batcher.answers(kind, items, [size] * len(items))


async def until(condition):
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise TimeoutError


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["text", "html"]),
            st.integers(1, 6),  # items
            st.sampled_from([1, BATCH_SIZE // 3, BATCH_SIZE + 1]),  # the size of each
            st.sampled_from(["stays", "stays", "leaves at once", "leaves soon", "fails"]),
        ),
        max_size=40,
    )
)
def test_every_request_gets_the_answers_to_its_own_items(requests):
    async def client(number, kind, count, size, what):
        items = [f"{number}.{place}" for place in range(count)]
        if what == "fails":
            items[count // 2] = POISON
        asking = asyncio.create_task(ask(batcher, kind, items, size))
        if what.startswith("leaves"):
            await asyncio.sleep(0 if what == "leaves at once" else 0.0005)
            asking.cancel()
        try:
            assert await asking == [f"{kind}:{item}" for item in items]
            return True
        except asyncio.CancelledError:
            assert what.startswith("leaves")
        except ValueError as error:
            assert what == "fails" and str(error) == POISON
        return False

    async def all_of_them():
        answered = await asyncio.gather(*(client(number, *request) for number, request in enumerate(requests)))
        await asyncio.to_thread(batcher.close)
        return answered

    batcher = Batcher(Recorder(), capacity=1000)
    answered = asyncio.run(all_of_them())
    assert all(answered[number] for number, request in enumerate(requests) if request[3] == "stays")
    assert not any(answered[number] for number, request in enumerate(requests) if request[3] == "fails")
    assert not batcher._waiting


def test_what_waits_together_is_one_batch_and_a_small_request_does_not_wait_for_a_large_one():
    work = Recorder()
    batcher = Batcher(work, capacity=1000)

    async def talk():
        work.go.clear()
        first = asyncio.create_task(ask(batcher, "text", ["first"]))
        await until(lambda: work.begun)  # it did not wait for others
        large = asyncio.create_task(ask(batcher, "text", [f"l{n}" for n in range(10)], BATCH_SIZE // 4))
        small = [asyncio.create_task(ask(batcher, kind, [f"s{n}"])) for n, kind in enumerate(["text", "html", "text"])]
        await until(lambda: len(batcher._waiting) == 4)
        work.go.set()
        await asyncio.gather(first, large, *small)

    asyncio.run(talk())
    batcher.close()
    assert work.batches == [
        ("text", ["first"]),
        ("text", ["l0", "s0", "s2", "l1", "l2", "l3"]),
        ("html", ["s1"]),
        ("text", ["l4", "l5", "l6", "l7"]),
        ("text", ["l8", "l9"]),
    ]


def test_a_full_queue_refuses_at_once_and_takes_again_when_there_is_room():
    work = Recorder()
    batcher = Batcher(work, capacity=2)

    async def talk():
        work.go.clear()
        running = asyncio.create_task(ask(batcher, "text", ["a"]))
        await until(lambda: work.begun)
        waiting = [asyncio.create_task(ask(batcher, "text", items)) for items in (["b", "c"], ["d"])]
        await until(lambda: len(batcher._waiting) == 2)
        with pytest.raises(Overloaded):
            await ask(batcher, "text", ["e"])  # at once: the work stands still
        assert work.begun == 1
        waiting[0].cancel()
        await asyncio.gather(waiting[0], return_exceptions=True)
        after = asyncio.create_task(ask(batcher, "text", ["f"]))
        await until(lambda: len(batcher._waiting) == 2)
        work.go.set()
        assert await asyncio.gather(running, waiting[1], after) == [["text:a"], ["text:d"], ["text:f"]]

    asyncio.run(talk())
    batcher.close()
    assert sorted(item for _, items in work.batches for item in items) == ["a", "d", "f"]


def test_closing_answers_what_waits_and_refuses_what_comes_later():
    work = Recorder()
    batcher = Batcher(work, capacity=1000)

    async def talk():
        work.go.clear()
        first = asyncio.create_task(ask(batcher, "text", ["first"]))
        await until(lambda: work.begun)
        waiting = [asyncio.create_task(ask(batcher, "text", [str(number)], BATCH_SIZE)) for number in range(5)]
        await until(lambda: len(batcher._waiting) == 5)
        closing = asyncio.create_task(asyncio.to_thread(batcher.close))
        await until(lambda: batcher._closing)
        with pytest.raises(Overloaded):
            await ask(batcher, "text", ["late"])
        work.go.set()
        assert await asyncio.gather(*waiting) == [[f"text:{number}"] for number in range(5)]
        assert await first == ["text:first"]
        await closing

    asyncio.run(talk())
