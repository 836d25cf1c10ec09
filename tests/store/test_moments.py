"""What SQL functions record in a long transaction: the moment of the call, not the beginning."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from mainspring.domain.types import JobState
from tests.support import schedules as support
from tests.support.calls import call, enqueue
from tests.support.rows import insert_definition, insert_job, job

Act = Callable[[psycopg.Connection], int]


def clock(tx: psycopg.Connection) -> datetime:
    instant: datetime
    ((instant,),) = tx.execute("select clock_timestamp()").fetchall()
    return instant


def row(tx: psycopg.Connection, query: str, *values: object) -> dict[str, Any]:
    with tx.cursor(row_factory=dict_row) as cursor:
        (found,) = cursor.execute(query, values).fetchall()
    return found


def flow(tx: psycopg.Connection) -> int:
    steps = Jsonb([{"definition": "work"}])
    query = "select (mainspring.enqueue_flow('f', %s)).job_ids[1]"
    ((job_id,),) = tx.execute(query, (steps,)).fetchall()
    return int(job_id)


def trigger(tx: psycopg.Connection) -> int:
    support.insert_schedule(tx)
    query = "select mainspring.trigger_scheduled_job('tick') ->> 'job_id'"
    ((job_id,),) = tx.execute(query).fetchall()
    return int(job_id)


WAYS: dict[str, Act] = {
    "enqueue": enqueue,
    "enqueue with a key": lambda tx: enqueue(tx, dedupe_key="a"),
    "enqueue_many": lambda tx: call(tx, "enqueue_many", "work", payloads=[Jsonb({})])[0],
    "enqueue_flow": flow,
    "trigger_scheduled_job": trigger,
}


@pytest.mark.parametrize("way", WAYS)
def test_a_job_of_a_long_transaction_has_waited_only_since_it_was_enqueued(tx, way: str):
    before = clock(tx)

    found = job(tx, WAYS[way](tx))

    assert found["created_at"] >= before
    assert found["scheduled_for"] >= before
    assert (found["state"], found["waits_for"]) == ("queued", None)


def test_a_delay_counts_from_the_call(tx):
    before = clock(tx)

    job_id = enqueue(tx, delay="1 hour")

    query = "select scheduled_for - interval '1 hour' >= %s as is_later, waits_for "
    found = row(tx, query + "from mainspring.jobs where job_id = %s", before, job_id)
    assert found == {"is_later": True, "waits_for": "time"}


def test_a_deadline_that_passed_during_the_transaction_is_refused(tx):
    with pytest.raises(psycopg.Error, match=r"deadline .* has passed"):
        enqueue(tx, deadline=clock(tx))


def test_a_job_that_is_retried_or_canceled_in_a_long_transaction_is_so_at_the_call(tx):
    job_id = insert_job(tx, JobState.FAILED)
    before = clock(tx)

    call(tx, "retry", job_id)
    assert job(tx, job_id)["scheduled_for"] >= before
    call(tx, "cancel", job_id)

    assert job(tx, job_id)["finished_at"] >= before


def test_an_event_is_emitted_at_the_call(tx):
    before = clock(tx)

    tx.execute("select mainspring.emit('order.paid')")

    assert row(tx, "select emitted_at from mainspring.events")["emitted_at"] >= before


def test_an_approval_is_asked_for_and_given_at_the_call(tx):
    insert_definition(tx, "asked", approvals_needed=1)
    before = clock(tx)
    job_id = enqueue(tx, "asked")
    asked = clock(tx)
    tx.execute("select mainspring.approve(%s)", (job_id,))

    found = row(tx, "select requested_at, decided_at from mainspring.approvals")
    assert before <= found["requested_at"] <= asked <= found["decided_at"]
    assert row(tx, "select voted_at from mainspring.votes")["voted_at"] >= asked


def test_a_schedule_that_is_enabled_in_a_long_transaction_begins_at_the_call(tx):
    support.insert_schedule(tx, enabled=False)
    before = clock(tx)

    tx.execute("update mainspring.schedules set enabled = true")

    assert row(tx, "select changed_at from mainspring.clocks")["changed_at"] >= before
