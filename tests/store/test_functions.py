"""The SQL door: mainspring.enqueue and enqueue_many with every option, from plain SQL."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest
from psycopg.types.json import Jsonb

from mainspring.domain.types import JobState
from tests.support.calls import call, enqueue
from tests.support.rows import count, insert, insert_job, job

HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
LATER = datetime(2099, 1, 1, tzinfo=UTC)


def finish(connection: psycopg.Connection, job_id: int) -> None:
    """End a job in the shortest way, which frees its dedupe key."""
    assert call(connection, "cancel", job_id) == ["canceled"]


def test_a_job_takes_what_is_not_said_from_its_definition(tx):
    row = job(tx, enqueue(tx))

    assert (row["queue"], row["priority"], row["max_attempts"]) == ("tools", 70, 4)
    assert (row["state"], row["waits_for"], row["tenant_id"]) == ("queued", None, "default")
    assert (row["payload"], row["attempt"], row["tags"]) == ({}, 0, None)


@pytest.mark.parametrize(
    ("option", "value", "column"),
    [
        ("payload", {"n": [1, None, "é"]}, "payload"),
        ("tenant", "acme", "tenant_id"),
        ("queue", "mail", "queue"),
        ("priority", 0, "priority"),
        ("priority", 1000, "priority"),
        ("max_attempts", 1, "max_attempts"),
        ("max_attempts", 1000, "max_attempts"),
        ("scheduled_for", LATER, "scheduled_for"),
        ("deadline", LATER, "deadline_at"),
        ("dedupe_key", "k", "dedupe_key"),
        ("correlation_id", "c", "correlation_id"),
        ("tags", ["a", "b"], "tags"),
    ],
)
def test_what_an_enqueue_says_is_what_the_job_has(tx, option, value, column):
    given = Jsonb(value) if option == "payload" else value

    assert job(tx, enqueue(tx, **{option: given}))[column] == value


@pytest.mark.parametrize(
    ("options", "waits_for"),
    [
        ({"delay": HOUR}, "time"),
        ({"delay": timedelta(microseconds=1)}, "time"),
        ({"delay": timedelta(0)}, None),
        ({"scheduled_for": LATER}, "time"),
        ({"scheduled_for": LATER, "dedupe_key": "k"}, "time"),
        ({"scheduled_for": datetime(2001, 1, 1, tzinfo=UTC)}, None),
        ({"delay": timedelta(0), "dedupe_key": "k"}, None),
    ],
)
def test_a_job_waits_for_an_instant_that_is_still_to_come(tx, options, waits_for):
    row = job(tx, enqueue(tx, **options))

    assert (row["state"], row["waits_for"]) == ("queued", waits_for)


def test_a_delay_counts_from_now(tx):
    row = job(tx, enqueue(tx, delay=HOUR))

    assert row["scheduled_for"] == row["created_at"] + HOUR


# Dedupe


def test_a_key_is_free_for_another_tenant(tx):
    first = enqueue(tx, dedupe_key="k")

    assert enqueue(tx, dedupe_key="k", tenant="acme") != first


@pytest.mark.parametrize("state", ["queued", "running"])
def test_a_live_holder_of_the_key_is_given_back_on_request(tx, state):
    first = insert_job(tx, JobState(state), dedupe_key="k")

    assert enqueue(tx, dedupe_key="k", on_duplicate="existing") == first
    assert count(tx, "jobs") == 1


def test_a_key_is_free_when_its_holder_has_finished(tx):
    first = enqueue(tx, dedupe_key="k")
    finish(tx, first)

    assert enqueue(tx, dedupe_key="k") != first


def test_equal_content_is_one_job_whatever_the_order_of_its_keys(tx):
    first = enqueue(tx, payload='{"a": 1, "b": 2}', dedupe_by="content")
    options = {"dedupe_by": "content", "on_duplicate": "existing"}

    assert enqueue(tx, payload='{"b": 2, "a": 1}', **options) == first
    assert enqueue(tx, payload='{"b": 2, "a": 3}', **options) != first
    assert enqueue(tx, "other", payload='{"a": 1, "b": 2}', **options) != first


def test_a_window_outlives_the_job(tx):
    options = {"dedupe_key": "k", "dedupe_window": HOUR, "on_duplicate": "existing"}
    first = enqueue(tx, **options)
    finish(tx, first)

    assert enqueue(tx, **options) == first
    assert count(tx, "jobs") == 0


def test_a_window_ends(tx):
    options = {"dedupe_key": "k", "dedupe_window": HOUR}
    first = enqueue(tx, **options)
    finish(tx, first)
    tx.execute("update mainspring.enqueue_keys set expires_at = now()")

    assert enqueue(tx, **options) != first


def test_a_window_that_has_ended_does_not_free_the_key_of_a_live_job(tx):
    options = {"dedupe_key": "k", "dedupe_window": HOUR, "on_duplicate": "existing"}
    first = enqueue(tx, **options)
    tx.execute("update mainspring.enqueue_keys set expires_at = now()")

    assert enqueue(tx, **options) == first


def test_a_window_that_met_a_live_job_leads_to_that_job(tx):
    first = enqueue(tx, dedupe_key="k")
    options = {"dedupe_key": "k", "dedupe_window": HOUR, "on_duplicate": "existing"}
    enqueue(tx, **options)
    finish(tx, first)

    assert enqueue(tx, **options) == first


def test_an_idempotency_key_gives_back_the_first_job_even_when_it_is_over(tx):
    first = enqueue(tx, payload='{"n": 1}', idempotency_key="i")
    finish(tx, first)

    assert enqueue(tx, payload='{"n": 1}', idempotency_key="i") == first
    assert count(tx, "jobs") == 0


def test_an_idempotency_key_is_free_after_its_time_and_for_another_tenant(tx):
    first = enqueue(tx, idempotency_key="i")

    assert enqueue(tx, idempotency_key="i", tenant="acme") != first
    tx.execute("update mainspring.enqueue_keys set expires_at = now()")
    assert enqueue(tx, idempotency_key="i") != first


def test_enqueue_job_says_whether_the_job_is_new(tx):
    first = tx.execute("select * from mainspring.enqueue_job('work', idempotency_key => 'i')")
    again = tx.execute("select * from mainspring.enqueue_job('work', idempotency_key => 'i')")

    (job_id, is_new) = first.fetchone()
    assert (is_new, again.fetchone()) == (True, (job_id, False))


def test_a_retry_with_another_payload_moves_the_key_of_its_content_along(tx):
    first = enqueue(tx, payload='{"n": 1}', dedupe_by="content")
    finish(tx, first)
    call(tx, "retry", first, payload='{"n": 2}')
    options = {"dedupe_by": "content", "on_duplicate": "existing"}

    assert enqueue(tx, payload='{"n": 2}', **options) == first
    assert enqueue(tx, payload='{"n": 1}', **options) != first


RACE = """
create function public.finish_the_holder() returns trigger language plpgsql as $$
begin
    delete from mainspring.jobs where dedupe_key = 'k' and payload = '{"is": "holder"}';
    return null;
end $$;
create trigger race after insert on mainspring.jobs
    for each statement execute function public.finish_the_holder();
"""


def test_a_holder_that_finishes_at_the_same_time_does_not_stop_an_enqueue(tx):
    first = enqueue(tx, dedupe_key="k", payload='{"is": "holder"}')
    tx.execute(RACE)

    job_id = enqueue(tx, dedupe_key="k", on_duplicate="existing")

    assert (job_id > first, job(tx, job_id)["dedupe_key"]) == (True, "k")


def test_a_holder_that_finishes_at_the_same_time_does_not_stop_a_retry(tx):
    job_id = insert_job(tx, JobState.FAILED, dedupe_key="k")
    enqueue(tx, dedupe_key="k", payload='{"is": "holder"}')
    tx.execute(RACE)

    assert call(tx, "retry", job_id) == [job_id]
    assert job(tx, job_id)["state"] == "queued"


# Bulk


def test_enqueue_many_makes_a_job_a_payload_in_order(tx):
    ids = call(tx, "enqueue_many", "work", payloads=[Jsonb({"n": n}) for n in range(50)])

    assert ids == sorted(ids)
    assert [job(tx, job_id)["payload"]["n"] for job_id in ids] == list(range(50))


def test_enqueue_many_gives_all_jobs_what_it_says(tx):
    options = {"queue": "mail", "priority": 5, "max_attempts": 9, "deadline": LATER}
    more = {"correlation_id": "c", "tags": ["t"], "tenant": "acme", "delay": HOUR}
    ids = call(tx, "enqueue_many", "work", payloads=[Jsonb({})] * 2, **options, **more)

    for row in (job(tx, job_id) for job_id in ids):
        assert (row["queue"], row["priority"], row["max_attempts"]) == ("mail", 5, 9)
        assert (row["deadline_at"], row["correlation_id"], row["tags"]) == (LATER, "c", ["t"])
        assert (row["tenant_id"], row["waits_for"]) == ("acme", "time")
        assert abs(row["scheduled_for"] - row["created_at"] - HOUR) < SECOND


def test_enqueue_many_takes_what_is_not_said_from_the_definition(tx):
    (job_id,) = call(tx, "enqueue_many", "work", payloads=[Jsonb({})])
    row = job(tx, job_id)

    assert (row["queue"], row["priority"], row["max_attempts"]) == ("tools", 70, 4)
    assert (row["waits_for"], row["dedupe_key"]) == (None, None)


def test_enqueue_many_leaves_out_payloads_whose_key_is_taken(tx):
    enqueue(tx, dedupe_key="a")
    payloads = [Jsonb({"n": n}) for n in range(5)]
    keys = ["a", "b", "b", None, None]
    ids = call(tx, "enqueue_many", "work", payloads=payloads, dedupe_keys=keys)

    assert [job(tx, job_id)["payload"]["n"] for job_id in ids] == [1, 3, 4]


@pytest.mark.parametrize("payloads", ["{}", None])
def test_enqueue_many_of_nothing_is_nothing(tx, payloads):
    assert call(tx, "enqueue_many", "work", payloads=payloads) == []
    assert count(tx, "jobs") == 0


# Transactions and notices


def test_a_rolled_back_enqueue_leaves_nothing(tx):
    with tx.transaction(force_rollback=True):
        enqueue(tx, dedupe_key="k", dedupe_window=HOUR, idempotency_key="i")
        call(tx, "enqueue_many", "work", payloads=[Jsonb({})] * 3)
        assert count(tx, "jobs") == 4

    assert (count(tx, "jobs"), count(tx, "enqueue_keys")) == (0, 0)
    assert enqueue(tx, dedupe_key="k", dedupe_window=HOUR, idempotency_key="i")


@pytest.fixture
def listener(connection):
    """Hears the channel; the worker in the table takes jobs of the queue `tools`."""
    insert(connection, "definitions", key="work", kind="python", queue="tools")
    worker = {"worker_id": 7, "expires_at": LATER, "pid": 1, "concurrency": 1, "name": "w"}
    more = {"host": "h", "process_identity": "", "queues": ["tools"], "version": "0"}
    insert(connection, "workers", **worker, **more)
    connection.execute("listen mainspring")
    return connection


def heard(listener: psycopg.Connection) -> list[str]:
    """What was sent so far; our own message behind it says where that ends."""
    listener.execute("notify mainspring, 'end'")
    notices = []
    for notice in listener.notifies(timeout=10):
        if notice.payload == "end":
            break
        notices.append(notice.payload)
    return notices


def test_an_enqueue_wakes_who_waits_for_its_queue(listener):
    enqueue(listener)
    call(listener, "enqueue_many", "work", payloads=[Jsonb({})])
    enqueue(listener, dedupe_key="k")

    assert heard(listener) == ["ready:tools"] * 3


def test_an_enqueue_wakes_nobody_for_another_queue_or_a_far_day(listener):
    enqueue(listener, queue="mail")
    enqueue(listener, scheduled_for=LATER)
    enqueue(listener, scheduled_for=LATER, dedupe_key="k")

    assert heard(listener) == []


def test_an_enqueue_wakes_nobody_who_is_busy_where_there_is_work_already(listener):
    insert_job(listener, JobState.QUEUED, queue="tools")
    listener.execute("update mainspring.workers set wants_wake = false")
    enqueue(listener)

    assert heard(listener) == []


def test_a_cancel_of_a_running_job_tells_its_worker(listener):
    job_id = insert_job(listener, JobState.RUNNING, worker_id=7)

    assert call(listener, "cancel", job_id) == ["running"]
    assert heard(listener) == ["cancel:7"]
