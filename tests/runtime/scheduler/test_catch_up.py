"""No scheduler ran for five slots: what becomes of them, and what the handler gets to know.

Slots are an hour apart and the newest is half an hour old, so the next one comes long after
the test.
"""

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from mainspring import Context, Launcher, Mainspring
from mainspring.runtime.scheduler.launchers import Launch
from tests.support import schedules
from tests.support.schedules import HOUR, MINUTE, scheduling
from tests.support.waiting import await_until
from tests.support.workers import working

DOWN_FOR = timedelta(hours=4, minutes=30)

Seen = list[tuple[datetime, str, bool, int]]


@pytest.fixture
def seen(app: Mainspring) -> Seen:
    """What the runs were told of their slots: instant, trigger, catch-up, missed."""
    seen: Seen = []

    @app.job
    async def work(ctx: Context) -> None:
        slot = ctx.slot
        assert slot is not None
        assert slot.schedule == "tick"
        seen.append((slot.at, slot.trigger, slot.is_catch_up, slot.missed))

    return seen


async def catch_up(
    app: Mainspring,
    connection: psycopg.Connection,
    down_for: timedelta = DOWN_FOR,
    **policy: Any,
) -> list[str]:
    """Start a scheduler and a worker after so long; what came of each slot, oldest first."""
    await app.aregister_definitions()
    schedules.insert_schedule(connection, **policy)
    schedules.miss(connection, "tick", down_for)
    async with scheduling(app), working(app):
        await await_until(lambda: schedules.slots(connection))
        await await_until(lambda: all(is_over(slot) for slot in schedules.slots(connection)))
    return schedules.outcomes(connection)


def is_over(slot: schedules.Row) -> bool:
    return slot["outcome"] != "enqueued" or slot["run_state"] is not None


def ages(connection: psycopg.Connection) -> list[timedelta]:
    """How long before the newest slot each one was."""
    instants = [slot["scheduled_for"] for slot in schedules.slots(connection)]
    return [instants[-1] - instant for instant in instants]


async def test_none_lets_every_slot_go(app: Mainspring, connection: psycopg.Connection, seen: Seen):
    assert await catch_up(app, connection, catch_up="none") == ["missed"] * 5

    assert (seen, schedules.jobs(connection)) == ([], [])
    assert {slot["reason"] for slot in schedules.slots(connection)} == {
        "no scheduler ran in time (catch_up = none)"
    }
    assert schedules.status(connection)["missed_slots"] == 5


@pytest.mark.parametrize(
    ("age", "outcome"), [(timedelta(seconds=50), "enqueued"), (timedelta(seconds=70), "missed")]
)
async def test_none_fires_the_newest_slot_within_its_grace(
    app: Mainspring,
    connection: psycopg.Connection,
    seen: Seen,
    age: timedelta,
    outcome: str,
):
    outcomes = await catch_up(app, connection, 4 * HOUR + age, catch_up="none")

    assert outcomes == [*["missed"] * 4, outcome]
    assert [(trigger, is_late, missed) for _, trigger, is_late, missed in seen] == (
        [("scheduler", False, 4)] if outcome == "enqueued" else []
    )


async def test_latest_fires_the_newest_slot_for_all(
    app: Mainspring, connection: psycopg.Connection, seen: Seen
):
    assert await catch_up(app, connection, catch_up="latest") == [*["coalesced"] * 4, "enqueued"]

    newest = schedules.slots(connection)[-1]
    assert seen == [(newest["scheduled_for"], "catchup", True, 4)]
    assert (newest["trigger"], newest["missed"]) == ("catchup", 4)


async def test_latest_is_the_default(app: Mainspring, connection: psycopg.Connection, seen: Seen):
    assert await catch_up(app, connection) == [*["coalesced"] * 4, "enqueued"]


async def test_all_fires_every_slot_in_the_order_of_time_and_one_after_the_other(
    app: Mainspring, connection: psycopg.Connection, seen: Seen
):
    assert await catch_up(app, connection, catch_up="all") == ["enqueued"] * 5

    slots = schedules.slots(connection)
    assert seen == [(slot["scheduled_for"], "catchup", True, 0) for slot in slots]
    assert ages(connection) == [4 * HOUR, 3 * HOUR, 2 * HOUR, HOUR, 0 * HOUR]
    runs = schedules.jobs(connection)
    assert all(later["started_at"] >= earlier["finished_at"] for earlier, later in pairwise(runs))


async def test_all_fires_the_newest_up_to_the_limit(
    app: Mainspring, connection: psycopg.Connection, seen: Seen
):
    outcomes = await catch_up(app, connection, catch_up="all", catch_up_limit=2)

    assert outcomes == [*["missed"] * 3, *["enqueued"] * 2]
    assert [missed for *_, missed in seen] == [0, 3]


@pytest.mark.parametrize(
    ("policy", "max_age", "fired"),
    [
        ("all", 2 * HOUR, 2),
        ("all", 31 * MINUTE, 1),
        ("all", 29 * MINUTE, 0),
        ("latest", 31 * MINUTE, 1),
        ("latest", 29 * MINUTE, 0),
    ],
)
async def test_a_slot_that_is_too_old_is_not_caught_up_on(
    app: Mainspring,
    connection: psycopg.Connection,
    seen: Seen,
    policy: str,
    max_age: timedelta,
    fired: int,
):
    outcomes = await catch_up(app, connection, catch_up=policy, catch_up_max_age=max_age)

    is_fired = [outcome == "enqueued" for outcome in outcomes]
    assert is_fired == [*[False] * (5 - fired), *[True] * fired]
    assert len(seen) == fired


@pytest.mark.parametrize("policy", ["none", "latest", "all"])
async def test_after_a_catch_up_slots_go_on_in_their_rhythm(
    app: Mainspring, connection: psycopg.Connection, seen: Seen, policy: str
):
    await catch_up(app, connection, catch_up=policy)

    newest = schedules.slots(connection)[-1]["scheduled_for"]
    schedule = schedules.schedule(connection)
    assert schedule["next_slot_at"] == schedule["next_run_at"] == newest + HOUR
    assert schedule["last_slot_at"] == newest


@pytest.mark.parametrize(("policy", "missed"), [("latest", 4), ("all", 0)])
async def test_a_launcher_is_asked_once_for_a_catch_up(
    app: Mainspring, connection: psycopg.Connection, seen: Seen, policy: str, missed: int
):
    launches: list[Launch] = []

    class Watch(Launcher):
        def check_conditions(self) -> bool:
            launches.append(self.slot)
            return True

    app.schedules.register_launcher("watch", Watch)
    await catch_up(app, connection, catch_up=policy, launcher="watch")

    newest = schedules.slots(connection)[-1]["scheduled_for"]
    assert [(launch.at, launch.trigger, launch.missed) for launch in launches] == [
        (newest, "catchup", missed)
    ]


async def test_a_launcher_that_says_no_skips_what_would_have_been_caught_up_on(
    app: Mainspring, connection: psycopg.Connection, seen: Seen
):
    outcomes = await catch_up(app, connection, catch_up="all", condition_sql="select false")

    assert (outcomes, seen) == (["skipped"] * 5, [])
    assert schedules.status(connection)["skipped_slots"] == 5
