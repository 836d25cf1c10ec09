"""Pausing, resuming and listing queues in Python, without a worker."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.domain.errors import InvalidOption
from mainspring.domain.errors.queues import QueueNotPaused
from tests.support.rows import refused

LONG = timedelta(days=36500)


async def test_a_queue_is_paused_listed_and_resumed(app: Mainspring):
    made = await app.queues.apause("mail", reason="down", duration=timedelta(hours=1), by="ada")
    (listed,) = await app.queues.alist()

    assert (made.name, made.paused_by, made.reason) == ("mail", "ada", "down")
    assert made.paused_until is not None
    assert timedelta(minutes=59) < made.paused_until - made.paused_at <= timedelta(hours=1)
    assert (listed.name, listed.ready, listed.pause) == ("mail", 0, made)

    await app.queues.aresume("mail", by="bo")

    assert await app.queues.alist() == []


async def test_pausing_again_keeps_since_when_and_replaces_the_rest(app: Mainspring):
    first = await app.queues.apause("mail", reason="down", duration=timedelta(hours=1), by="ada")
    second = await app.queues.apause("mail", by="bo")

    assert (second.paused_at, second.paused_until) == (first.paused_at, None)
    assert (second.paused_by, second.reason) == ("bo", "")


async def test_a_pause_whose_end_has_passed_is_none(app: Mainspring, connection):
    await app.queues.apause("mail", duration=timedelta(hours=1))
    connection.execute("update mainspring.queues set paused_until = now() - interval '1 ms'")

    assert await app.queues.alist() == []
    with pytest.raises(QueueNotPaused):
        await app.queues.aresume("mail")


async def test_a_queue_that_is_not_paused_is_suggested(app: Mainspring):
    await app.queues.apause("mail")

    with pytest.raises(QueueNotPaused, match="'mial' is not paused; did you mean 'mail'"):
        await app.queues.aresume("mial")


async def test_the_audit_says_who_paused_and_resumed(app: Mainspring, connection):
    await app.queues.apause("mail", reason="down", by="ada")
    await app.queues.aresume("mail", by="bo")

    noted = connection.execute(
        "select actor, action, noun, subject, reason from mainspring.audit order by audit_id"
    ).fetchall()
    assert noted[-2:] == [
        ("ada", "pause", "queue", "mail", "down"),
        ("bo", "resume", "queue", "mail", "down"),
    ]


def test_pauses_work_from_plain_code(app: Mainspring):
    app.queues.pause("mail")
    assert [queue.name for queue in app.queues.list()] == ["mail"]

    app.queues.resume("mail")

    assert app.queues.list(tenant_id="default") == []


@pytest.mark.parametrize(
    ("name", "given", "option"),
    [
        ("", {}, "queue"),
        ("x" * 501, {}, "queue"),
        ("mail", {"reason": "x" * 10_001}, "reason"),
        ("mail", {"duration": timedelta(0)}, "duration"),
        ("mail", {"duration": LONG + timedelta(seconds=1)}, "duration"),
        ("mail", {"until": datetime(2020, 1, 1, tzinfo=UTC)}, "until"),
        ("mail", {"until": datetime(2200, 1, 1, tzinfo=UTC)}, "until"),
        ("mail", {"until": datetime(2030, 1, 1)}, "until"),  # noqa: DTZ001 - refused
        (
            "mail",
            {"until": datetime(2030, 1, 1, tzinfo=UTC), "duration": timedelta(hours=1)},
            "until",
        ),
    ],
)
async def test_a_pause_that_cannot_be_is_refused(app: Mainspring, name, given, option):
    with pytest.raises(InvalidOption, match=f"^{option}") as caught:
        await app.queues.apause(name, **given)
    assert caught.value.option == option
    assert await app.queues.alist() == []


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ("null", "queue"),
        ("'mail', null", "reason"),
        ("'mail', until => 'infinity'", "until"),
        ("'mail', until => now()", "until"),
        ("'mail', duration => '0'", "duration"),
        ("'mail', duration => '101 years'", "duration"),
    ],
)
def test_sql_refuses_the_same(connection: psycopg.Connection, arguments: str, option: str):
    with refused(connection, "MS003", option, option=option):
        connection.execute(f"select mainspring.pause_queue({arguments})")
