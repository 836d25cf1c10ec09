"""mainspring.why: every reason is produced by making it true, and gone once its fix was applied."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import psycopg
import pytest

from mainspring.domain.types import JobState
from tests.support.rows import insert, insert_attempt, insert_definition, insert_job, refused
from tests.support.waiting import wait_until

W = 7


def why(connection: psycopg.Connection, job_id: int, tenant: str | None = None) -> dict[str, Any]:
    ((answer,),) = connection.execute("select mainspring.why(%s, %s)", (job_id, tenant)).fetchall()
    return dict(answer)


def codes(connection: psycopg.Connection, job_id: int) -> list[str]:
    return [reason["code"] for reason in why(connection, job_id)["reasons"]]


def first(connection: psycopg.Connection, job_id: int) -> Mapping[str, Any]:
    reason: Mapping[str, Any] = why(connection, job_id)["reasons"][0]
    return reason


def add_worker(connection: psycopg.Connection, worker_id: int = W, **columns: Any) -> None:
    row = {
        "pid": 1, "concurrency": 2, "name": f"w{worker_id}", "host": "h", "process_identity": "i",
        "queues": ["default"], "version": "1.3", "expires_at": "tomorrow",
    }  # fmt: skip
    insert(connection, "workers", worker_id=worker_id, **{**row, **columns})


def enqueue(connection: psycopg.Connection, options: str = "", definition: str = "work") -> int:
    ((job_id,),) = connection.execute(
        f"select mainspring.enqueue(%s {options})".encode(), (definition,)
    ).fetchall()
    return int(job_id)


def claim(connection: psycopg.Connection, job_id: int, worker_id: int = W) -> None:
    connection.execute(
        "update mainspring.jobs set state = 'running', waits_for = null, worker_id = %s,"
        " fence = nextval('mainspring.fences'), started_at = clock_timestamp(),"
        " attempt = attempt + 1 where job_id = %s",
        (worker_id, job_id),
    )


@pytest.fixture(autouse=True)
def work(connection: psycopg.Connection) -> None:
    insert_definition(connection, "work")


# Ids that no job has, and jobs that have ended


def test_an_id_that_was_never_given_out_is_unknown(connection):
    newest = enqueue(connection)

    assert first(connection, newest + 1)["code"] == "unknown_id"
    assert f"the newest is {newest}" in first(connection, newest + 1)["sentence"]


def test_a_job_whose_transaction_is_open_is_not_committed(connection, database_url):
    with psycopg.connect(database_url) as other:
        job_id = enqueue(other)
        assert codes(connection, job_id) == ["not_committed"]
        other.commit()

    assert codes(connection, job_id) == ["nobody_serves"]


def test_a_deleted_job_was_deleted_by_someone(connection):
    job_id = enqueue(connection)
    connection.execute("select mainspring.delete_job(%s)", (job_id,))

    assert codes(connection, job_id) == ["deleted"]


@pytest.mark.parametrize(("kept", "code"), [("1 ms", "pruned"), ("1 hour", "not_committed")])
def test_an_id_older_than_what_is_kept_is_pruned(connection, kept, code):
    job_id = insert_job(connection, JobState.SUCCEEDED)
    connection.execute("update mainspring.retention set keep = %s::interval", (kept,))
    enqueue(connection)
    connection.execute("delete from mainspring.jobs_history where job_id = %s", (job_id,))

    assert codes(connection, job_id) == [code]


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED])
def test_a_job_that_has_ended_says_how(connection, state):
    job_id = insert_job(connection, state, last_error="broke\nhere", attempt=2)

    reason = first(connection, job_id)

    assert (reason["code"], why(connection, job_id)["state"]) == ("ended", state)
    assert ("broke" in reason["sentence"]) is (state is not JobState.SUCCEEDED)
    expected = None if state is JobState.SUCCEEDED else f"mainspring jobs retry {job_id}"
    assert reason["fix"] == expected


def test_of_another_tenant_there_is_no_such_job(connection):
    job_id = enqueue(connection)

    assert why(connection, job_id, "default")["state"] == "queued"
    with refused(connection, "MS030", "there is no job", job_id=job_id):
        why(connection, job_id, "acme")


# Running


def test_a_running_job_runs_on_its_worker(connection):
    add_worker(connection)
    job_id = enqueue(connection)
    claim(connection, job_id)

    reason = first(connection, job_id)

    assert (reason["code"], reason["fix"]) == ("running", f"mainspring jobs cancel {job_id}")
    assert "on w7 since" in reason["sentence"]
    assert "times out at" in reason["sentence"]
    assert "usually" not in reason["sentence"], "nobody knows yet"


def test_what_a_worker_claimed_beyond_its_places_is_buffered(connection):
    add_worker(connection, concurrency=2)
    jobs = [enqueue(connection) for _ in range(3)]
    for job_id in jobs:
        claim(connection, job_id)

    assert [codes(connection, job_id) for job_id in jobs] == [
        ["running"],
        ["running"],
        ["buffered"],
    ]

    connection.execute("update mainspring.jobs set progress = '{}' where job_id = %s", (jobs[2],))

    assert codes(connection, jobs[2]) == ["running"]


@pytest.mark.parametrize(("silent", "expected"), [(19, ["running"]), (21, ["worker_silent"])])
def test_a_worker_is_silent_after_two_thirds_of_its_lease(connection, silent, expected):
    add_worker(connection)
    job_id = enqueue(connection)
    claim(connection, job_id)
    connection.execute(
        "update mainspring.workers set renewed_at = now() - %s * interval '1 second',"
        " expires_at = now() - %s * interval '1 second' + interval '30 seconds'",
        (silent, silent),
    )

    assert codes(connection, job_id)[:1] == expected


def test_a_running_job_that_was_canceled_is_stopping(connection):
    add_worker(connection)
    job_id = enqueue(connection)
    claim(connection, job_id)
    connection.execute("select mainspring.cancel(%s, 'wrong month')", (job_id,))

    assert codes(connection, job_id) == ["stopping", "running"]
    assert "wrong month" in first(connection, job_id)["sentence"]


# Waits


def test_an_approval_is_missing_until_it_is_given(connection):
    add_worker(connection)
    job_id = enqueue(connection, ", approvals_needed => 2")
    connection.execute("select mainspring.approve(%s)", (job_id,))

    reason = first(connection, job_id)
    assert (reason["code"], reason["facts"]["missing"]) == ("approval", 1)
    assert reason["fix"] == f"mainspring approvals approve {job_id}"


def test_a_parent_says_what_itself_waits_for(connection):
    add_worker(connection)
    parent = enqueue(connection, ", delay => '1 hour'")
    middle = enqueue(connection, f", after => array[{parent}]")
    job_id = enqueue(connection, f", after => array[{middle}]")

    reason = first(connection, job_id)

    assert reason["code"] == "parents"
    assert (
        f"{middle} (blocked: It waits for {parent} (queued: It was enqueued for later"
        in (reason["sentence"])
    )
    assert reason["fix"] == f"mainspring why {parent}"


def test_a_failed_parent_has_to_be_retried(connection):
    add_worker(connection)
    parent = insert_job(connection, JobState.FAILED)
    job_id = enqueue(connection, f", after => array[{parent}], on_parent_failure => 'wait'")

    reason = first(connection, job_id)
    assert (reason["code"], reason["fix"]) == (
        "parent_failed",
        f"mainspring jobs retry {parent}",
    )

    connection.execute("select mainspring.retry(%s)", (parent,))
    assert codes(connection, job_id) == ["parents"]


@pytest.mark.parametrize(
    ("failures", "status", "code"),
    [
        (0, None, "delay"),
        (1, "failed", "backoff"),
        (1, "timeout", "backoff"),
        (1, "snoozed", "snoozed"),
        (0, "lost", "jitter"),
    ],
)
def test_a_job_waits_for_its_time_for_a_reason(connection, failures, status, code):
    add_worker(connection)
    job_id = enqueue(connection, ", delay => '1 hour'")
    if status is not None:
        insert_attempt(connection, job_id, status=status, error="timeout of it")
        connection.execute("update mainspring.jobs set failures = %s", (failures,))

    answer = why(connection, job_id)

    assert [reason["code"] for reason in answer["reasons"]] == [code]
    assert answer["estimate"]["at"] == answer["reasons"][0]["until"]
    connection.execute("update mainspring.jobs set scheduled_for = now()")
    assert codes(connection, job_id) == ["soon"]


def test_a_later_run_of_a_schedule_waits_for_its_turn(connection):
    add_worker(connection)
    insert(connection, "schedules", name="report", cron="0 * * * *", definition="work")
    ((schedule_id,),) = connection.execute(
        "select schedule_id from mainspring.schedules"
    ).fetchall()
    run = {"schedule_id": schedule_id, "slot_at": "2026-01-01"}
    earlier = insert_job(connection, JobState.RUNNING, worker_id=W, **run)
    job_id = insert_job(connection, JobState.QUEUED, waits_for="turn", **run)

    reason = first(connection, job_id)

    assert (reason["code"], reason["fix"]) == ("turn", f"mainspring why {earlier}")
    connection.execute("delete from mainspring.jobs where job_id = %s", (earlier,))
    assert codes(connection, job_id) == ["soon"]


def test_no_worker_knows_the_definition(connection):
    add_worker(connection)
    job_id = enqueue(connection)
    connection.execute("update mainspring.jobs set waits_for = 'handler'")
    assert codes(connection, job_id) == ["handler"]

    insert(connection, "worker_schemas", worker_id=W, key="work")

    assert codes(connection, job_id) == ["soon"]


# Limits


def limited(connection: psycopg.Connection, options: str, name: str = "mail") -> list[int]:
    """Two jobs of a limit."""
    add_worker(connection)
    connection.execute(f"select mainspring.set_limit('{name}', {options})".encode())
    connection.execute(
        "update mainspring.definitions set limit_name = %s where key = 'work'", (name,)
    )
    return [enqueue(connection), enqueue(connection)]


@pytest.mark.parametrize(
    ("options", "fix"),
    [
        ("concurrency => 1", "limits set mail --concurrency 2"),
        (
            "1, rate_count => 9, rate_period => '1 minute', burst => 4",
            "limits set mail --concurrency 2 --rate 9/60s --burst 4",
        ),
        ("key_concurrency => 1", "limits set mail --key-concurrency 2"),
    ],
)
def test_all_places_of_a_limit_are_taken(connection, options, fix):
    running, job_id = limited(connection, options)
    assert codes(connection, job_id) == ["soon"]

    claim(connection, running)

    reason = first(connection, job_id)
    assert (reason["code"], reason["fix"]) == ("limit_places", f"mainspring {fix}")
    assert f"job {running}" in reason["sentence"]
    connection.execute("select mainspring.set_limit('mail', 2)")
    assert codes(connection, job_id) == ["soon"]


@pytest.mark.parametrize("column", ["concurrency", "key_concurrency"])
def test_a_limit_of_nothing_lets_nothing_run(connection, column):
    _, job_id = limited(connection, f"{column} => 0")

    reason = first(connection, job_id)
    option = column.replace("_", "-")
    assert (reason["code"], reason["fix"]) == (
        "limit_zero",
        f"mainspring limits set mail --{option} 1",
    )
    connection.execute(f"select mainspring.set_limit('mail', {column} => 1)".encode())
    assert codes(connection, job_id) == ["soon"]


def test_a_tenant_may_run_no_more(connection):
    connection.execute("update mainspring.tenants set max_running = 1")
    add_worker(connection)
    running, job_id = enqueue(connection), enqueue(connection)
    claim(connection, running)

    reason = first(connection, job_id)
    assert (reason["code"], reason["fix"]) == (
        "tenant_cap",
        "mainspring tenants update default --max-running 2",
    )
    connection.execute("update mainspring.tenants set max_running = 2")
    assert codes(connection, job_id) == ["soon"]


def test_a_rate_has_no_token(connection):
    running, job_id = limited(connection, "rate_count => 1, rate_period => '1 hour'")
    claim(connection, running)
    connection.execute(
        "select mainspring.take_token(job_id, fence) from mainspring.jobs where job_id = %s",
        (running,),
    )

    answer = why(connection, job_id)
    assert answer["reasons"][0]["code"] == "rate"
    assert answer["estimate"]["at"] == answer["reasons"][0]["until"]
    connection.execute("delete from mainspring.buckets")
    assert codes(connection, job_id) == ["soon"]


# Claims


def test_a_paused_queue_holds_whatever_is_in_it(connection):
    add_worker(connection)
    job_id = enqueue(connection)
    later = enqueue(connection, ", delay => '1 hour'")
    connection.execute("select mainspring.pause_queue('default', 'provider down')")

    reason = first(connection, job_id)

    assert (reason["code"], reason["fix"]) == ("queue_paused", "mainspring queues resume default")
    assert "(provider down)" in reason["sentence"]
    assert codes(connection, later) == ["delay", "queue_paused"]
    connection.execute("select mainspring.resume_queue('default')")
    assert codes(connection, job_id) == ["soon"]


def test_nobody_serves_a_mistyped_queue(connection):
    add_worker(connection, queues=["mail"])
    job_id = enqueue(connection, ", queue => 'mails'")

    reason = first(connection, job_id)

    assert (reason["code"], reason["fix"]) == ("nobody_serves", "mainspring worker --queues mails")
    assert "did you mean mail?" in reason["sentence"]
    add_worker(connection, 8, queues=["mails"])
    assert codes(connection, job_id) == ["soon"]


def test_the_workers_of_another_tenant_serve_nobody_else(connection):
    add_worker(connection, process_identity="api:acme:bot")
    job_id = enqueue(connection)
    assert codes(connection, job_id) == ["nobody_serves"]

    connection.execute("update mainspring.workers set process_identity = 'api:*:bot'")

    assert codes(connection, job_id) == ["soon"]


def test_all_workers_of_the_queue_are_stopping(connection):
    add_worker(connection, is_stopping=True)
    job_id = enqueue(connection)
    assert codes(connection, job_id) == ["all_stopping"]

    add_worker(connection, 8)

    assert codes(connection, job_id) == ["soon"]


def test_a_locked_row_names_who_holds_it(connection, database_url):
    add_worker(connection)
    job_id = enqueue(connection)
    other = psycopg.connect(database_url, application_name="psql")
    try:
        other.execute("select from mainspring.jobs for update")

        reason = first(connection, job_id)

        assert reason["code"] == "locked"
        assert reason["fix"] == f"select pg_terminate_backend({other.info.backend_pid});"
        assert f"of psql (pid {other.info.backend_pid})" in reason["sentence"]
        connection.execute(reason["fix"].encode())
        wait_until(lambda: codes(connection, job_id) == ["soon"])
    finally:
        other.close()


def test_better_priorities_come_first(connection):
    add_worker(connection)
    better = enqueue(connection, ", priority => 1")
    job_id = enqueue(connection)

    assert codes(connection, job_id) == ["behind_priority"]
    assert codes(connection, better) == ["soon"]
    claim(connection, better)
    assert codes(connection, job_id) == ["soon"]


def test_older_jobs_and_those_of_other_tenants_come_first(connection):
    insert(connection, "tenants", tenant_id="acme")
    add_worker(connection)
    older = enqueue(connection)
    job_id = enqueue(connection)
    other = insert_job(connection, JobState.QUEUED, tenant_id="acme")

    reason = first(connection, job_id)

    assert (reason["code"], reason["facts"]["own"], reason["facts"]["others"]) == ("behind", 1, 1)
    assert str(other) not in str(reason["facts"])
    claim(connection, older)
    claim(connection, other)
    assert codes(connection, job_id) == ["places_full"]


def test_counts_end_at_a_thousand(connection):
    add_worker(connection)
    connection.execute("select mainspring.enqueue('work') from generate_series(1, 1100)")
    job_id = enqueue(connection)

    reason = first(connection, job_id)

    assert "1,000 or more jobs of its tenant" in reason["sentence"]
    assert reason["facts"]["ahead"] == 1000
    assert why(connection, job_id)["estimate"] is None


def test_all_places_of_the_workers_are_taken(connection):
    add_worker(connection, concurrency=1)
    running, job_id = enqueue(connection), enqueue(connection)
    claim(connection, running)

    reason = first(connection, job_id)

    assert (reason["code"], reason["fix"]) == ("places_full", f"mainspring why {running}")
    add_worker(connection, 8)
    assert codes(connection, job_id) == ["soon"]


def test_an_estimate_says_what_it_is_based_on(connection):
    add_worker(connection, concurrency=1)
    for _ in range(3):
        insert_job(
            connection, JobState.SUCCEEDED, started_at="2026-01-01 00:00Z",
            finished_at="2026-01-01 00:01Z",
        )  # fmt: skip
    running, job_id = enqueue(connection), enqueue(connection)
    claim(connection, running)

    estimate = why(connection, job_id)["estimate"]

    assert estimate["basis"] == (
        "0 jobs before it, 1 places, and 60 s a job as of the latest 3 of work"
    )


# What nobody can do anything about, and what is said besides


@pytest.mark.parametrize(
    ("deadline", "expected"),
    [
        (timedelta(minutes=59), ["soon", "deadline"]),
        (timedelta(minutes=61), ["soon"]),
        (-timedelta(seconds=1), ["deadline"]),
    ],
)
def test_a_deadline_is_told_when_it_is_near_or_past(connection, deadline, expected):
    add_worker(connection)
    job_id = enqueue(connection)
    connection.execute("update mainspring.jobs set deadline_at = now() + %s", (deadline,))

    assert codes(connection, job_id) == expected


def test_a_job_that_is_set_aside_says_what_it_makes_fail(connection):
    add_worker(connection)
    job_id = enqueue(connection)
    connection.execute(
        "select mainspring.put_aside('claim', %s, 'broken row', array['1 hour'::interval])",
        (job_id,),
    )

    reason = first(connection, job_id)
    assert (reason["code"], reason["facts"]["error"]) == ("set_aside", "broken row")
    connection.execute("update mainspring.set_aside set again_at = now()")
    assert codes(connection, job_id) == ["soon"]


def test_a_database_that_takes_no_writes_says_so(connection, database_url):
    add_worker(connection)
    job_id = enqueue(connection)
    connection.execute(
        psycopg.sql.SQL("alter database {} set default_transaction_read_only = on").format(
            psycopg.sql.Identifier(connection.info.dbname)
        )
    )
    with psycopg.connect(database_url, autocommit=True) as other:
        reason = first(other, job_id)
        assert reason["code"] == "read_only"
        other.execute(reason["fix"].encode())

    with psycopg.connect(database_url, autocommit=True) as other:
        assert codes(other, job_id) == ["soon"]


def test_a_job_that_killed_its_worker_says_so_last(connection):
    add_worker(connection)
    job_id = enqueue(connection)
    connection.execute("update mainspring.jobs set losses = 1")

    assert codes(connection, job_id) == ["soon", "unlucky"]


def test_a_queued_job_that_was_asked_to_cancel_is_stopping(connection):
    add_worker(connection)
    job_id = enqueue(connection)
    connection.execute("update mainspring.jobs set cancel_requested_at = now()")

    assert codes(connection, job_id) == ["stopping"]


def test_commands_for_another_tenant_name_it(connection):
    insert(connection, "tenants", tenant_id="a b")
    job_id = insert_job(connection, JobState.FAILED, tenant_id="a b")

    assert first(connection, job_id)["fix"] == f"mainspring jobs retry {job_id} --tenant 'a b'"
