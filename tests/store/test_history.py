"""History: jobs move there when they finish, by day, and leave when their time has passed."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from mainspring.db.statements import load
from mainspring.domain.jobs.model import FINAL_STATES
from mainspring.domain.types import JobState
from mainspring.store import history
from tests.support.rows import count, insert, insert_attempt, insert_job, job

PARENTS = ("jobs_history", "attempts")
DAY = timedelta(days=1)
MINUTE = timedelta(minutes=1)
LONGEST = 30 * DAY
POLICIES = [
    (None, None, LONGEST),
    (None, "succeeded", 7 * DAY),
    ("acme", None, 3 * DAY),
    ("acme", "failed", 5 * DAY),
]


def run(connection: psycopg.Connection, name: str, **params: Any) -> int:
    """A statement of history; how many things it made or removed."""
    cursor = connection.execute(load("history")[name].sql, params)
    return int(cursor.fetchall()[0][0]) if cursor.description else cursor.rowcount


def prune(connection: psycopg.Connection, limit: int = 10, **params: Any) -> int:
    """Prune all of history; how many jobs were removed."""
    span = {"after": datetime.min.replace(tzinfo=UTC), "before": datetime.now(UTC), "chosen": None}
    statement = load("history")["prune_jobs"].sql
    return len(connection.execute(statement, {**span, "limit": limit, **params}).fetchall())


def drop_past(connection: psycopg.Connection) -> int:
    """Drop the days that are past; how many that were."""
    names = connection.execute(load("history")["past_partitions"].sql).fetchall()
    for (name,) in names:
        connection.execute(load("history")["drop_partition"].sql, {"name": name})
    return len(names)


def partition(parent: str, day: date) -> str:
    return f"{parent}_{day:%Y%m%d}"


def partitions(connection: psycopg.Connection, parent: str) -> set[str]:
    rows = connection.execute(
        "select relname from pg_inherits join pg_class on oid = inhrelid "
        "where inhparent = ('mainspring.' || %s)::regclass",
        (parent,),
    )
    return {name for (name,) in rows} - {f"{parent}_default"}


def make_partition(connection: psycopg.Connection, parent: str, day: date) -> None:
    make = "create table mainspring.{} partition of mainspring.{} for values from ({}) to ({})"
    ends = (midnight(day), midnight(day + DAY))
    names = (sql.Identifier(partition(parent, day)), sql.Identifier(parent))
    connection.execute(sql.SQL(make).format(*names, *map(sql.Literal, ends)))


def drop_all(connection: psycopg.Connection) -> None:
    for parent in PARENTS:
        for name in partitions(connection, parent):
            connection.execute(sql.SQL("drop table mainspring.{}").format(sql.Identifier(name)))


def today() -> date:
    return datetime.now(UTC).date()


def midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def where(connection: psycopg.Connection, parent: str, job_id: int) -> str:
    """The partition that holds the job's row."""
    query = sql.SQL("select tableoid::regclass::text from mainspring.{} where job_id = %s")
    ((name,),) = connection.execute(query.format(sql.Identifier(parent)), (job_id,)).fetchall()
    return str(name).removeprefix("mainspring.")


def set_policies(connection: psycopg.Connection, policies: list[tuple[Any, Any, Any]]) -> None:
    connection.execute("delete from mainspring.retention")
    for tenant_id, state, keep in policies:
        insert(connection, "retention", tenant_id=tenant_id, state=state, keep=keep)


def finished(connection: psycopg.Connection, age: timedelta, **columns: Any) -> int:
    """A job that ended so long ago, by the transaction's clock, with one attempt."""
    ((now,),) = connection.execute("select now()").fetchall()
    state = JobState(columns.pop("state", "failed"))
    job_id = insert_job(connection, state, finished_at=now - age, **columns)
    insert_attempt(connection, job_id, finished_at=now - age)
    return job_id


def remaining(connection: psycopg.Connection) -> set[int]:
    rows = connection.execute("select job_id from mainspring.jobs_history")
    return {job_id for (job_id,) in rows}


# Partitions


def test_partitions_are_made_from_today_on(tx):
    drop_all(tx)

    assert run(tx, "ensure_partitions", days_ahead=2) == 6

    for parent in PARENTS:
        days = {partition(parent, today() + step * DAY) for step in range(3)}
        assert partitions(tx, parent) == days


def test_partitions_are_made_once(tx):
    run(tx, "ensure_partitions", days_ahead=8)

    assert run(tx, "ensure_partitions", days_ahead=8) == 0
    assert run(tx, "ensure_partitions", days_ahead=9) == 2


@pytest.mark.parametrize("setting", ["timezone = 'Pacific/Auckland'", "datestyle = 'SQL, DMY'"])
def test_a_day_is_a_day_of_utc_however_the_session_writes_dates(tx, setting):
    drop_all(tx)
    tx.execute(f"set local {setting}")
    run(tx, "ensure_partitions", days_ahead=1)

    last = insert_job(tx, JobState.FAILED, finished_at=midnight(today() + DAY) - timedelta(0, 0, 1))
    first = insert_job(tx, JobState.FAILED, finished_at=midnight(today() + DAY))

    assert where(tx, "jobs_history", last) == partition("jobs_history", today())
    assert where(tx, "jobs_history", first) == partition("jobs_history", today() + DAY)


def test_a_finished_job_and_its_attempt_go_where_their_day_is(tx):
    job_id = finished(tx, timedelta(0))

    for parent in PARENTS:
        assert where(tx, parent, job_id) == partition(parent, today())


def test_a_day_without_a_partition_goes_to_the_default_one(tx):
    job_id = finished(tx, 400 * DAY)

    for parent in PARENTS:
        assert where(tx, parent, job_id) == f"{parent}_default"


def test_rows_that_came_before_their_partition_stay_where_they_are(tx):
    drop_all(tx)
    job_id = finished(tx, timedelta(0))

    assert run(tx, "ensure_partitions", days_ahead=1) == 2

    assert where(tx, "jobs_history", job_id) == "jobs_history_default"
    assert partitions(tx, "jobs_history") == {partition("jobs_history", today() + DAY)}


def oldest_kept(keep: timedelta) -> date:
    return (datetime.now(UTC) - keep).date()


@pytest.mark.parametrize("parent", PARENTS)
def test_a_day_is_dropped_when_all_of_it_is_past_the_longest_retention(tx, parent):
    set_policies(tx, POLICIES)
    kept, past = oldest_kept(LONGEST), oldest_kept(LONGEST) - DAY
    for day in (kept, past):
        make_partition(tx, parent, day)

    assert drop_past(tx) == 1

    assert partition(parent, past) not in partitions(tx, parent)
    assert {partition(parent, kept), partition(parent, today())} <= partitions(tx, parent)


@pytest.mark.parametrize(
    "policies",
    [[], [("acme", None, DAY)], [(None, "failed", DAY)]],
    ids=["none", "for one tenant", "for one state"],
)
def test_no_day_is_dropped_while_some_of_its_jobs_are_kept_for_ever(tx, policies):
    set_policies(tx, policies)
    make_partition(tx, "jobs_history", today() - 100 * DAY)
    job_id = finished(tx, 100 * DAY, state="succeeded")

    assert drop_past(tx) == 0
    assert job_id in remaining(tx)


def test_a_day_is_kept_for_the_one_tenant_that_keeps_it(tx):
    set_policies(tx, [*POLICIES, ("patient", None, 200 * DAY)])
    make_partition(tx, "jobs_history", today() - 100 * DAY)

    assert drop_past(tx) == 0


# Retention


@pytest.mark.parametrize(
    ("tenant_id", "state", "keep"),
    [
        ("acme", "failed", 5 * DAY),
        ("acme", "succeeded", 3 * DAY),
        ("acme", "canceled", 3 * DAY),
        ("default", "succeeded", 7 * DAY),
        ("default", "failed", LONGEST),
        ("default", "dead_letter", LONGEST),
        ("default", "canceled", LONGEST),
    ],
)
def test_the_most_specific_policy_decides(tx, tenant_id, state, keep):
    set_policies(tx, POLICIES)
    young = finished(tx, keep - MINUTE, tenant_id=tenant_id, state=state)
    finished(tx, keep + MINUTE, tenant_id=tenant_id, state=state)

    assert prune(tx) == 1
    assert remaining(tx) == {young}


def test_attempts_leave_with_their_job(tx):
    set_policies(tx, POLICIES)
    finished(tx, 31 * DAY)
    young = finished(tx, 29 * DAY)

    prune(tx)

    assert tx.execute("select job_id from mainspring.attempts").fetchall() == [(young,)]


def test_pruning_takes_a_batch_at_a_time(tx):
    set_policies(tx, POLICIES)
    for _ in range(5):
        finished(tx, 31 * DAY)

    assert [prune(tx, limit=2) for _ in range(4)] == [2, 2, 1, 0]


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
def test_a_job_without_a_policy_is_kept(tx, state):
    set_policies(tx, [("acme", None, DAY)])
    job_id = finished(tx, 1000 * DAY, state=state)

    assert prune(tx) == 0
    assert remaining(tx) == {job_id}


def test_nothing_is_pruned_without_policies(tx):
    set_policies(tx, [])
    finished(tx, 1000 * DAY)

    assert prune(tx) == 0


def test_a_live_job_is_never_pruned(tx):
    job_id = insert_job(tx, JobState.QUEUED, created_at=midnight(today() - 1000 * DAY))

    prune(tx)

    assert job(tx, job_id)["state"] == "queued"


def test_a_job_that_is_retried_has_its_attempts_when_it_is_back(tx):
    job_id = finished(tx, 29 * DAY)
    tx.execute("select mainspring.retry(%s)", (job_id,))

    prune(tx)

    assert count(tx, "attempts") == 1


def test_keys_are_removed_at_their_expiry_and_not_before(tx):
    key = {"tenant_id": "default", "kind": "window", "job_id": 1}
    ((now,),) = tx.execute("select now()").fetchall()
    insert(tx, "enqueue_keys", key="past", expires_at=now, **key)
    insert(tx, "enqueue_keys", key="held", expires_at=now + timedelta(0, 0, 1), **key)

    assert run(tx, "prune_keys", limit=10) == 1
    assert tx.execute("select key from mainspring.enqueue_keys").fetchall() == [("held",)]


def test_keys_are_removed_a_batch_at_a_time_the_oldest_first(tx):
    for day in range(3):
        key = {"tenant_id": "default", "kind": "idempotency", "key": f"{day}", "job_id": 1}
        insert(tx, "enqueue_keys", expires_at=midnight(today() - (3 - day) * DAY), **key)

    assert run(tx, "prune_keys", limit=2) == 2
    assert tx.execute("select key from mainspring.enqueue_keys").fetchall() == [("2",)]


async def test_the_store_counts_what_was_removed(connection, aconnection):
    make_partition(connection, "attempts", today() - 100 * DAY)
    finished(connection, 50 * DAY)
    key = {"tenant_id": "default", "kind": "window", "key": "k", "job_id": 1}
    insert(connection, "enqueue_keys", expires_at=midnight(today()), **key)

    await history.ensure_partitions(aconnection, 9)
    assert partition("attempts", today() + 9 * DAY) in partitions(connection, "attempts")
    (past,) = await history.past_partitions(aconnection)
    await history.drop_partition(aconnection, past)
    assert await history.past_partitions(aconnection) == []
    windows = await history.windows(aconnection)
    assert sum([len(await history.prune_jobs(aconnection, each)) for each in windows]) == 1
    assert await history.prune_keys(aconnection) == 1


def test_a_job_that_ends_keeps_every_column(tx):
    """Each column has a value of its own, so that no two can be mistaken for each other."""
    instants = (
        *("created_at", "scheduled_for", "deadline_at", "cancel_requested_at", "slot_at"),
        "ready_at",
    )
    texts = (
        *("tenant_id", "queue", "dedupe_key", "correlation_id", "last_error", "created_by"),
        "source",
    )
    numbers = ("attempt", "failures", "losses", "max_attempts", "priority", "schedule_id")
    documents = ("payload", "progress", "checkpoint", "origin")
    kept: dict[str, Any] = {
        **{name: datetime(2020, 1, day, tzinfo=UTC) for day, name in enumerate(instants, 1)},
        **{name: f"a {name}" for name in texts},
        **{name: number for number, name in enumerate(numbers, 11)},
        **{name: Jsonb({"is": name}) for name in documents},
        "definition": "work",
        "definition_version": 31,
        "tags": ["a tag"],
        "delivery": "at_most_once",
    }
    job_id = insert_job(tx, JobState.RUNNING, **kept, probed_at=datetime.now(UTC))

    with tx.cursor(row_factory=dict_row) as cursor:
        cursor.execute(
            "select past.* from mainspring.jobs as job, mainspring.history_of("
            " job, 'failed', started_at => '2020-02-01Z', result => '1', failed => 2, losses => 5,"
            " error => 'broke') as past where job.job_id = %s",
            (job_id,),
        )
        (past,) = cursor.fetchall()
        cursor.execute("select now()")
        (now,) = cursor.fetchall()

    kept |= {name: {"is": name} for name in documents}
    kept |= {"failures": kept["failures"] + 2, "losses": 5, "last_error": "broke"}
    assert past.pop("finished_at") > now["now"]
    kept |= {"job_id": job_id, "state": "failed", "result": 1}
    kept |= {"started_at": datetime(2020, 2, 1, tzinfo=UTC)}
    left = dict.fromkeys(("fence", "worker_id", "probed_at", "waits_for"))
    assert past == {**kept, **left}
