"""The SQL door allows what domain MOVES allows and refuses the rest, state by state."""

from typing import Any

import psycopg
import pytest

from mainspring.domain.jobs.model import FINAL_STATES, MOVES
from mainspring.domain.types import JobState, WaitsFor
from tests.support.calls import call, enqueue
from tests.support.rows import YESTERDAY, count, insert_attempt, insert_job, job, refused

CAN_BE_CANCELED = [state for state in JobState if JobState.CANCELED in MOVES[state]]
CAN_BE_RETRIED = [state for state in sorted(FINAL_STATES) if JobState.QUEUED in MOVES[state]]
ENDED_WITH: dict[str, Any] = {
    "attempt": 3,
    "failures": 3,
    "losses": 1,
    "max_attempts": 3,
    "priority": 5,
    "queue": "mail",
    "tenant_id": "acme",
    "payload": '{"n": 1}',
    "dedupe_key": "k",
    "correlation_id": "c",
    "tags": ["t"],
    "checkpoint": '{"page": 7}',
    "progress": '{"current": 7}',
    "deadline_at": YESTERDAY,
    "cancel_requested_at": YESTERDAY,
    "last_error": "it broke",
}


def others(states: list[JobState]) -> list[JobState]:
    return [state for state in JobState if state not in states]


def place(connection: psycopg.Connection, job_id: int) -> str:
    live = connection.execute("select from mainspring.jobs where job_id = %s", (job_id,))
    return "jobs_history" if live.fetchone() is None else "jobs"


# Cancel


@pytest.mark.parametrize("state", [s for s in CAN_BE_CANCELED if s is not JobState.RUNNING])
def test_cancel_ends_a_job_that_does_not_run(tx, state):
    waits = {"waits_for": WaitsFor.TIME} if state is JobState.QUEUED else {}
    job_id = insert_job(tx, state, payload='{"n": 1}', **waits)

    assert call(tx, "cancel", job_id, reason="not needed") == ["canceled"]

    row = job(tx, job_id)
    assert (row["state"], row["last_error"], row["waits_for"]) == ("canceled", "not needed", None)
    assert (row["payload"], row["finished_at"] is not None) == ({"n": 1}, True)
    assert place(tx, job_id) == "jobs_history"


def test_cancel_asks_a_running_job_to_stop(tx):
    job_id = insert_job(tx, JobState.RUNNING)

    assert call(tx, "cancel", job_id, reason="not needed") == ["running"]

    row = job(tx, job_id)
    assert (row["state"], row["last_error"]) == ("running", "not needed")
    assert row["cancel_requested_at"] is not None


def test_a_second_cancel_keeps_the_instant_of_the_first(tx):
    job_id = insert_job(tx, JobState.RUNNING, cancel_requested_at=YESTERDAY)

    call(tx, "cancel", job_id, reason="again")

    assert job(tx, job_id)["cancel_requested_at"] == YESTERDAY


def test_cancel_of_a_canceled_job_changes_nothing(tx):
    job_id = insert_job(tx, JobState.CANCELED, last_error="the first reason")
    before = job(tx, job_id)

    assert call(tx, "cancel", job_id, reason="another") == ["canceled"]
    assert job(tx, job_id) == before


@pytest.mark.parametrize("state", others([*CAN_BE_CANCELED, JobState.CANCELED]))
def test_cancel_is_refused_to_a_job_that_has_ended(tx, state):
    job_id = insert_job(tx, state)

    message = f"job {job_id} is {state}; it cannot become canceled"
    with refused(tx, "MS031", message, job_id=job_id, state=state, target="canceled"):
        call(tx, "cancel", job_id)
    assert job(tx, job_id)["state"] == state


# Retry


@pytest.mark.parametrize("state", CAN_BE_RETRIED)
def test_retry_puts_an_ended_job_back_with_a_clean_count(tx, state):
    job_id = insert_job(tx, state, **ENDED_WITH)

    assert call(tx, "retry", job_id, tenant="acme") == [job_id]

    row = job(tx, job_id)
    assert (row["state"], row["waits_for"], place(tx, job_id)) == ("queued", None, "jobs")
    assert (row["failures"], row["losses"], row["max_attempts"]) == (0, 0, 3)
    assert (row["cancel_requested_at"], row["deadline_at"], row["progress"]) == (None, None, None)
    assert (row["started_at"], row["finished_at"], row["result"]) == (None, None, None)


def test_retry_keeps_what_the_job_is(tx):
    job_id = insert_job(tx, JobState.FAILED, **ENDED_WITH)
    before = job(tx, job_id)

    call(tx, "retry", job_id, tenant="acme")

    kept = "attempt priority queue tenant_id payload dedupe_key correlation_id tags created_at"
    for column in [*kept.split(), "checkpoint", "last_error", "definition"]:
        assert job(tx, job_id)[column] == before[column]


def test_retry_takes_another_payload(tx):
    job_id = insert_job(tx, JobState.FAILED, payload='{"n": 1}')

    call(tx, "retry", job_id, payload='{"n": 2}')

    assert job(tx, job_id)["payload"] == {"n": 2}


@pytest.mark.parametrize("state", others(CAN_BE_RETRIED))
def test_retry_is_refused_to_a_job_that_has_not_ended_or_succeeded(tx, state):
    job_id = insert_job(tx, state)
    before = job(tx, job_id)

    message = f"job {job_id} is {state}; it cannot become queued"
    with refused(tx, "MS031", message, job_id=job_id, state=state, target="queued"):
        call(tx, "retry", job_id)
    assert job(tx, job_id) == before


def test_retry_is_refused_while_another_job_holds_the_key(tx):
    job_id = insert_job(tx, JobState.FAILED, dedupe_key="k")
    holder = enqueue(tx, dedupe_key="k")

    message = f"job {holder} already has the dedupe key 'k'"
    with refused(tx, "MS020", message, key="k", job_id=holder):
        call(tx, "retry", job_id)
    assert job(tx, job_id)["state"] == "failed"


def test_retry_does_not_mind_the_same_key_of_another_tenant(tx):
    job_id = insert_job(tx, JobState.FAILED, dedupe_key="k")
    enqueue(tx, dedupe_key="k", tenant="acme")

    assert call(tx, "retry", job_id) == [job_id]


# Delete


@pytest.mark.parametrize("state", others([JobState.RUNNING]))
def test_delete_removes_a_job_with_its_attempts(tx, state):
    job_id, bystander = insert_job(tx, state), insert_job(tx, state)
    insert_attempt(tx, job_id)
    insert_attempt(tx, bystander)

    call(tx, "delete_job", job_id)

    assert count(tx, "job_status") == count(tx, "attempts") == 1
    assert job(tx, bystander)["state"] == state


def test_delete_is_refused_to_a_running_job(tx):
    job_id = insert_job(tx, JobState.RUNNING)
    insert_attempt(tx, job_id)

    message = f"job {job_id} is running; it cannot become deleted"
    with refused(tx, "MS031", message, job_id=job_id, state="running", target="deleted"):
        call(tx, "delete_job", job_id)
    assert count(tx, "attempts") == 1


def test_a_deleted_job_frees_its_key(tx):
    first = enqueue(tx, dedupe_key="k")
    call(tx, "delete_job", first)

    assert enqueue(tx, dedupe_key="k") != first


# In a transaction that is rolled back


@pytest.mark.parametrize(
    ("action", "state"),
    [("cancel", JobState.QUEUED), ("retry", JobState.FAILED), ("delete_job", JobState.FAILED)],
)
def test_what_is_rolled_back_did_not_happen(tx, action, state):
    job_id = insert_job(tx, state)
    insert_attempt(tx, job_id)
    before = job(tx, job_id)

    with tx.transaction(force_rollback=True):
        call(tx, action, job_id)

    assert (job(tx, job_id), count(tx, "attempts")) == (before, 1)
