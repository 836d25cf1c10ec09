"""Somebody edits a schedule in a transaction that stays open: the others go on."""

from collections.abc import Iterator

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.settings import load
from tests.support import schedules
from tests.support.schedules import scheduling
from tests.support.waiting import await_until

EVERY_SECOND = {"cron": None, "every": "1 second", "max_running": 1000, "overlap": "queue"}
KINDS = {
    "fires": {},
    "is checked": {"condition_sql": "select true"},
    "has a template": {"payload": '{"at": "{{slot_at}}"}'},
}


@pytest.fixture
def editor(database_url: str) -> Iterator[psycopg.Connection]:
    """Someone with a transaction open."""
    with psycopg.connect(database_url) as connection:
        yield connection


def lock(editor: psycopg.Connection) -> None:
    editor.execute("update mainspring.schedules set catch_up = 'all' where name = 'locked'")


@pytest.mark.parametrize("columns", KINDS.values(), ids=KINDS)
async def test_a_locked_schedule_holds_up_no_other(
    app: Mainspring, connection: psycopg.Connection, editor: psycopg.Connection, columns
):
    for name in ("locked", "free"):
        schedules.insert_schedule(connection, name, **EVERY_SECOND, **columns)
    async with scheduling(app):
        await await_until(lambda: schedules.outcomes(connection, "locked"))
        lock(editor)
        before = len(schedules.outcomes(connection, "free"))
        held = len(schedules.outcomes(connection, "locked"))

        await await_until(lambda: len(schedules.outcomes(connection, "free")) >= before + 3)
        assert len(schedules.outcomes(connection, "locked")) <= held + 1
        editor.rollback()
        await await_until(lambda: len(schedules.outcomes(connection, "locked")) > held + 1)


async def test_a_new_schedule_that_is_locked_holds_up_no_other(
    app: Mainspring, connection: psycopg.Connection, editor: psycopg.Connection
):
    schedules.insert_schedule(connection, "locked", **EVERY_SECOND)
    lock(editor)
    async with scheduling(app):
        schedules.insert_schedule(connection, "free", **EVERY_SECOND)

        await await_until(lambda: schedules.outcomes(connection, "free"))
        assert schedules.outcomes(connection, "locked") == []
        editor.rollback()
        await await_until(lambda: schedules.outcomes(connection, "locked"))


async def test_an_edit_that_does_not_concern_firing_holds_up_nothing(
    app: Mainspring, connection: psycopg.Connection, editor: psycopg.Connection
):
    schedules.insert_schedule(connection, "edited", **EVERY_SECOND)
    editor.execute("update mainspring.schedules set description = 'mine'")

    async with scheduling(app):
        await await_until(lambda: schedules.outcomes(connection, "edited"))


async def test_a_locked_schedule_holds_up_no_other_through_a_pooler(
    database_url: str, connection: psycopg.Connection, editor: psycopg.Connection
):
    for name in ("locked", "free"):
        schedules.insert_schedule(connection, name, **EVERY_SECOND)
    settings = load(database_url=database_url, use_pooler=True, poll_seconds=0.1)
    async with Mainspring(settings=settings) as app, scheduling(app):
        await await_until(lambda: schedules.outcomes(connection, "locked"))
        lock(editor)
        before = len(schedules.outcomes(connection, "free"))

        await await_until(lambda: len(schedules.outcomes(connection, "free")) >= before + 2)
        editor.rollback()
