"""Shares: nobody takes all places, and who waits is served in turn."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mainspring.db.shares import Shares


class Line:
    """Tasks that wait for places, and in which order they got them."""

    def __init__(self, shares: Shares) -> None:
        self._shares = shares
        self.served: list[str] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def join(self, *names: str) -> None:
        for name in names:
            self.tasks.append(asyncio.create_task(self._take(name)))
        await asyncio.sleep(0)

    async def give_back(self, who: str) -> None:
        self._shares.give_back(who)
        await asyncio.sleep(0)

    async def _take(self, who: str) -> None:
        await self._shares.take(who)
        self.served.append(who)


@contextmanager
def waiting(shares: Shares) -> Iterator[Line]:
    line = Line(shares)
    yield line
    for task in line.tasks:
        task.cancel()


async def test_one_alone_gets_half():
    with waiting(Shares(20)) as line:
        await line.join(*["a"] * 15)

        assert line.served == ["a"] * 10


@pytest.mark.parametrize(("size", "most"), [(1, 1), (2, 1), (3, 2), (4, 2), (6, 3)])
async def test_one_alone_gets_half_of_few_rounded_up(size: int, most: int):
    with waiting(Shares(size)) as line:
        await line.join(*["a"] * 9)

        assert line.served == ["a"] * most


async def test_several_leave_something_to_the_next():
    with waiting(Shares(20)) as line:
        await line.join(*["a"] * 20, *["b"] * 20, *["c"] * 20)
        line.served.clear()
        await line.join("d")

        assert line.served == ["d"]


async def test_who_holds_none_is_served_before_who_holds_some():
    with waiting(Shares(2)) as line:
        await line.join("a", "b", "a", "a", "c")
        await line.give_back("b")

        assert line.served == ["a", "b", "c"]


async def test_lines_are_served_in_turn():
    with waiting(Shares(1)) as line:
        await line.join("a", "b", "b", "c", "c")
        for who in ("a", "b", "c", "b"):
            await line.give_back(who)

        assert line.served == ["a", "b", "c", "b", "c"]


async def test_nobody_overtakes_others_of_the_same_tenant():
    with waiting(Shares(1)) as line:
        await line.join("b", "a")
        await line.join("a")
        await line.give_back("b")

        assert [task.done() for task in line.tasks] == [True, True, False]


async def test_who_waits_too_long_is_refused_and_takes_no_place():
    shares = Shares(1, wait_seconds=0.01)
    await shares.take("a")

    with pytest.raises(TimeoutError):
        await shares.take("a")

    shares.give_back("a")
    await shares.take("b")


async def test_who_gives_up_leaves_the_line_to_the_next():
    with waiting(Shares(1)) as line:
        await line.join("a", "b", "b")
        line.tasks[1].cancel()
        await line.give_back("a")

        assert line.served == ["a", "b"]


async def test_who_gives_up_when_it_is_served_gives_the_place_back():
    shares = Shares(1)
    with waiting(shares) as line:
        await line.join("a", "b")
        shares.give_back("a")
        line.tasks[1].cancel()
        await asyncio.wait([line.tasks[1]])

        assert line.served == ["a"]
        await asyncio.wait_for(shares.take("c"), 10)
