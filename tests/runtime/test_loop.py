"""The loop behind every background duty."""

import psycopg
import pytest

from mainspring.runtime.loop import Loop


@pytest.mark.parametrize("failures", [0, 1, 5, 2000])
async def test_a_loop_that_keeps_failing_pauses_ten_seconds_at_most(failures: int):
    async def fail() -> float:
        raise psycopg.OperationalError("away")

    loop = Loop("test", fail)
    loop._failures._count = failures

    assert 0 < await loop._pass() <= 10


async def test_a_loop_pauses_as_its_action_says_once_it_works_again():
    is_away = iter([True, False])

    async def act() -> float:
        if next(is_away):
            raise psycopg.OperationalError("away")
        return 3.0

    loop = Loop("test", act)

    assert await loop._pass() < 1
    assert await loop._pass() == 3.0
