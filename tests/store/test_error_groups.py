"""Errors, grouped: failures are added up by day, each once, in a bounded number of groups."""

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from mainspring.db.connect import connect
from mainspring.domain.error_groups import KEPT_DAYS, MOST_JOBS, UNSEEN_DAYS
from mainspring.domain.jobs.error_keys import LOST_WORKER, OTHER_KEY, summarize
from mainspring.store import error_groups
from tests.support.rows import count, insert, insert_tenant

NOW = datetime(2026, 11, 18, 12, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def folder(database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database_url, autocommit=True) as other:
        yield other


def fail(connection: psycopg.Connection, key: str = "a", **columns: Any) -> None:
    row = {
        "at": NOW,
        "tenant_id": "default",
        "queue": "default",
        "definition": "work",
        "error_key": key,
        "sample": f"{key}: broken",
        "count": 1,
        "job_ids": [1],
    }
    insert(connection, "failures", **{**row, **columns})


def fold(connection: psycopg.Connection, most: int = 10_000) -> int:
    ((folded,),) = connection.execute("select mainspring.fold_failures(%s)", (most,)).fetchall()
    return int(folded)


def days(connection: psycopg.Connection) -> dict[str, Any]:
    rows = connection.execute("select error_key, count from mainspring.error_days")
    return dict(rows.fetchall())


def test_the_key_of_a_lost_worker_is_that_of_the_domain(connection: psycopg.Connection):
    ((key,),) = connection.execute("select mainspring.lost_worker_key()").fetchall()

    assert key == summarize(LOST_WORKER).key


def test_failures_add_up_by_day_and_keep_the_newest_jobs(connection: psycopg.Connection):
    fail(connection, count=3, job_ids=[1, 2, 3], sample="old")
    fail(connection, at=NOW + timedelta(hours=2), count=2, job_ids=[8, 9], sample="new")
    fail(connection, at=NOW + DAY, job_ids=[10])
    assert fold(connection) == 3
    fail(connection, at=NOW - timedelta(hours=1), job_ids=[4, 9], sample="late")
    fold(connection)

    rows = connection.execute(
        "select day, count, first_at, last_at, sample, job_ids from mainspring.error_days"
        " order by day"
    ).fetchall()
    assert rows[0] == (
        NOW.date(),
        6,
        NOW - timedelta(hours=1),
        NOW + timedelta(hours=2),
        "new",
        [9, 8, 4, 3, 2],
    )
    assert rows[1][:2] == ((NOW + DAY).date(), 1)
    assert len(rows[0][5]) == MOST_JOBS
    assert count(connection, "failures") == 0


def test_a_batch_is_so_many_failures_at_most(connection: psycopg.Connection):
    for _ in range(5):
        fail(connection)

    assert [fold(connection, 3), fold(connection, 3), fold(connection, 3)] == [3, 2, 0]
    assert days(connection) == {"a": 5}


def test_of_two_that_fold_at_once_one_does(
    connection: psycopg.Connection, folder: psycopg.Connection
):
    fail(connection)
    with folder.transaction():
        assert fold(folder) == 1
        fail(connection)
        assert fold(connection) == 0

    assert fold(connection) == 1
    assert days(connection) == {"a": 2}


def test_many_that_fold_while_jobs_fail_count_each_once(
    connection: psycopg.Connection, database_url: str
):
    def fold_often() -> None:
        with psycopg.connect(database_url, autocommit=True) as own:
            for _ in range(40):
                fold(own, 7)

    threads = [threading.Thread(target=fold_often) for _ in range(3)]
    for thread in threads:
        thread.start()
    for number in range(200):
        fail(connection, str(number % 5))
    for thread in threads:
        thread.join()
    while fold(connection):
        pass

    assert days(connection) == {str(number): 40 for number in range(5)}


def test_one_that_is_killed_in_the_middle_loses_nothing(
    connection: psycopg.Connection, database_url: str
):
    fail(connection, count=4)
    killed = psycopg.connect(database_url)
    assert fold(killed) == 1
    ((pid,),) = killed.execute("select pg_backend_pid()").fetchall()
    connection.execute("select pg_terminate_backend(%s, 10000)", (pid,))
    killed.close()
    assert days(connection) == {}

    assert fold(connection) == 1
    assert days(connection) == {"a": 4}


@pytest.mark.parametrize(("groups", "others"), [(200, None), (201, 1), (1000, 800)])
def test_a_definition_has_so_many_groups_a_day(
    connection: psycopg.Connection, groups: int, others: int | None
):
    for number in range(groups):
        fail(connection, f"{number:04}")
    fold(connection)
    fail(connection, "0000")
    fail(connection, "9999", definition="other")
    fail(connection, "9998", at=NOW + DAY)
    fold(connection)

    found = days(connection)
    assert found.get(OTHER_KEY) == others
    assert len(found) == 200 + 2 + (others is not None)
    assert found["0000"] == 2
    assert sum(found.values()) == groups + 3


def test_the_errors_with_the_most_failures_keep_groups_of_their_own(connection: psycopg.Connection):
    for number in range(300):
        fail(connection, f"{number:04}")
    fail(connection, "zzzz", count=50)
    fold(connection)

    assert days(connection)["zzzz"] == 50


def test_a_tenant_does_not_take_the_groups_of_another(connection: psycopg.Connection):
    insert_tenant(connection, "acme")
    for number in range(300):
        fail(connection, f"{number:04}")
    fail(connection, "theirs", tenant_id="acme")
    fold(connection)

    assert days(connection)["theirs"] == 1


async def test_days_are_kept_for_so_long(connection: psycopg.Connection, database_url: str):
    today = datetime.now(UTC)
    fail(connection, "kept", at=today - KEPT_DAYS * DAY)
    fail(connection, "past", at=today - (KEPT_DAYS + 1) * DAY)
    fold(connection)

    async with await connect(database_url, name="test") as pruning:
        assert [await error_groups.prune(pruning), await error_groups.prune(pruning)] == [1, 0]

    assert days(connection) == {"kept": 1}


@pytest.mark.parametrize(("ago", "is_new"), [(UNSEEN_DAYS, False), (UNSEEN_DAYS + 1, True)])
def test_an_error_is_new_if_it_was_not_seen_for_so_long(
    connection: psycopg.Connection, ago: int, is_new: bool
):
    fail(connection, at=NOW - ago * DAY, definition="another")
    fail(connection, at=NOW)
    fail(connection, "b", at=NOW, tenant_id="acme")
    fail(connection, OTHER_KEY, at=NOW)
    fold(connection)

    seen = "select error_key, is_new from mainspring.error_status where day = %s"
    assert dict(connection.execute(seen, (NOW.date(),)).fetchall()) == {
        "a": is_new,
        "b": True,
        OTHER_KEY: False,
    }


def test_the_tags_of_a_group_are_bounded(connection: psycopg.Connection):
    lists = [[f"t{number:02}", "same"] for number in range(30)]
    ((tags,),) = connection.execute(
        "select mainspring.tags_of(%s::jsonb)", (Jsonb(lists),)
    ).fetchall()

    assert len(tags) == 20
    assert tags[0] == "same"
    assert connection.execute("select mainspring.tags_of(null)").fetchone() == (None,)


def test_asyncio_is_not_blocked_by_an_empty_outbox(database_url: str):
    async def fold_nothing() -> bool:
        async with await connect(database_url, name="test") as own:
            return await error_groups.fold(own)

    assert asyncio.run(fold_nothing()) is False
