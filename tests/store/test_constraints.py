"""The tables refuse rows that no legal move leads to, whoever writes them."""

import secrets
import string
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from mainspring.domain.jobs.model import FINAL_STATES, LIVE_STATES
from mainspring.domain.types import JobState
from tests.support.rows import insert, insert_attempt, insert_job

NOW = datetime.now(UTC)
RUNNING: dict[str, Any] = {"state": "running", "fence": 1, "worker_id": 7, "started_at": NOW}
FINISHED: dict[str, Any] = {"state": "failed", "finished_at": NOW}

ILLEGAL_JOBS = [
    pytest.param({**RUNNING, "fence": None}, "jobs_running_has_lease", id="no fence"),
    pytest.param({**RUNNING, "worker_id": None}, "jobs_running_has_lease", id="no worker"),
    pytest.param({**RUNNING, "started_at": None}, "jobs_running_has_lease", id="no start"),
    pytest.param({**RUNNING, "waits_for": "time"}, "jobs_running_has_lease", id="waits"),
    pytest.param({"worker_id": 7}, "jobs_running_has_lease", id="queued with a worker"),
    pytest.param({"fence": 1}, "jobs_running_has_lease", id="queued with a fence"),
    pytest.param({"fence": 1, "worker_id": 7}, "jobs_running_has_lease", id="queued with a lease"),
    pytest.param({"finished_at": NOW}, "jobs_are_live", id="queued and finished"),
    pytest.param({**RUNNING, "finished_at": NOW}, "jobs_are_live", id="running and finished"),
    pytest.param({"payload": "[]"}, "jobs_payload_is_object", id="payload is a list"),
    pytest.param({"payload": "null"}, "jobs_payload_is_object", id="payload is null"),
    pytest.param({"priority": -1}, "jobs_priority_in_range", id="priority -1"),
    pytest.param({"priority": 1001}, "jobs_priority_in_range", id="priority 1001"),
]
# One byte more than fits; 500 characters have at most four bytes each.
TOO_LONG = [
    pytest.param("tenants", {"tenant_id": "x" * 201}, id="tenant"),
    pytest.param(
        "definitions",
        {"key": "k", "kind": "python", "limit_name": "x" * 201},
        id="limit of a definition",
    ),
    pytest.param("limits", {"name": "x" * 201}, id="limit"),
    *(
        pytest.param("jobs", {"definition": "work", name: "x" * (longest + 1)}, id=f"job's {name}")
        for name, longest in [
            *(("tenant_id", 200), ("queue", 2000), ("dedupe_key", 2000), ("created_by", 2000)),
        ]
    ),
    pytest.param("jobs", {"definition": "x" * 201}, id="job's definition"),
    pytest.param(
        "jobs", {"definition": "work", "limit_name": "", "limit_key": "x" * 2001}, id="limit key"
    ),
]
ILLEGAL_HISTORY = [
    pytest.param({"finished_at": None}, id="not finished"),
    pytest.param({"fence": 1}, id="fence"),
    pytest.param({"worker_id": 7}, id="worker"),
    pytest.param({"waits_for": "time"}, id="waits"),
]
ILLEGAL_OTHERS = [
    pytest.param("tenants", {"tenant_id": ""}, id="tenant without a name"),
    pytest.param("definitions", {"key": "k", "kind": "python", "queue": ""}, id="queue"),
    pytest.param("definitions", {"key": "k", "kind": "python", "priority": 1001}, id="priority"),
    pytest.param("definitions", {"key": "k", "kind": "python", "max_attempts": 0}, id="attempts"),
    pytest.param("definitions", {"key": "k", "kind": "python", "timeout": "0"}, id="timeout"),
    pytest.param(
        "definitions", {"key": "k", "kind": "python", "backoff_factor": 0.5}, id="shrinking backoff"
    ),
    pytest.param("retention", {"keep": "-1 day"}, id="negative retention"),
    pytest.param("retention", {"keep": "1 day", "state": "running"}, id="retention of a live job"),
    pytest.param(
        "record_retention", {"kind": "slots", "keep": "23 hours"}, id="slots kept for hours"
    ),
    pytest.param(
        "record_retention", {"kind": "jobs", "keep": "2 days"}, id="jobs among other records"
    ),
]


@pytest.mark.parametrize(("columns", "constraint"), ILLEGAL_JOBS)
def test_an_illegal_live_job_is_refused(tx, columns, constraint):
    with pytest.raises(psycopg.errors.CheckViolation) as caught:
        insert(tx, "jobs", definition="work", **columns)

    assert caught.value.diag.constraint_name == constraint


@pytest.mark.parametrize(("table", "columns"), TOO_LONG)
def test_a_name_that_is_too_long_for_an_index_is_refused(tx, table, columns):
    with pytest.raises(psycopg.errors.CheckViolation, match=r"_fits?"):
        insert(tx, table, **columns)


def test_the_longest_names_fit_every_index_together(tx):
    letters = string.ascii_letters + string.digits

    def name(length: int, alphabet: str = letters) -> str:
        return "".join(secrets.choice(alphabet) for _ in range(length))

    # Random, since an index compresses what repeats; each character of the last has four bytes.
    wide = "".join(map(chr, range(0x20000, 0x20400)))
    tenant_id, limit_name, definition = (f"n{name(199)}" for _ in range(3))
    queue, dedupe_key, limit_key, key, creator = (name(500, wide) for _ in range(5))
    insert(tx, "tenants", tenant_id=tenant_id)
    insert(tx, "definitions", key=definition, kind="python", queue=queue)
    row = {"tenant_id": tenant_id, "queue": queue, "definition": definition, "created_by": creator}
    held = {"limit_name": limit_name, "limit_key": limit_key}
    for waits_for in ("time", "limit", "handler", None):
        insert(tx, "jobs", **row, **held, waits_for=waits_for, dedupe_key=f"{waits_for}{key[5:]}")
    tx.execute("update mainspring.jobs set waits_for = null")
    insert(tx, "jobs", **row, dedupe_key=dedupe_key)
    insert(tx, "buckets", **held, full_at=NOW)
    held_key = {"tenant_id": tenant_id, "kind": "idempotency", "key": key}
    insert(tx, "enqueue_keys", **held_key, job_id=1, expires_at=NOW)
    insert_job(tx, JobState.FAILED, **row)


@pytest.mark.parametrize("state", sorted(FINAL_STATES))
def test_a_final_state_is_refused_among_live_jobs(tx, state):
    with pytest.raises(psycopg.errors.CheckViolation) as caught:
        insert(tx, "jobs", definition="work", state=state)

    assert caught.value.diag.constraint_name == "jobs_are_live"


@pytest.mark.parametrize("state", sorted(LIVE_STATES))
def test_a_live_state_is_refused_in_history(tx, state):
    with pytest.raises(psycopg.errors.CheckViolation) as caught:
        insert(tx, "jobs_history", job_id=1, definition="work", **{**FINISHED, "state": state})

    assert caught.value.diag.constraint_name == "jobs_history_are_final"


@pytest.mark.parametrize("columns", ILLEGAL_HISTORY)
def test_an_illegal_finished_job_is_refused(tx, columns):
    with pytest.raises(psycopg.errors.CheckViolation) as caught:
        insert(tx, "jobs_history", job_id=1, definition="work", **{**FINISHED, **columns})

    assert caught.value.diag.constraint_name == "jobs_history_are_final"


@pytest.mark.parametrize(("table", "columns"), ILLEGAL_OTHERS)
def test_what_is_out_of_range_is_refused_elsewhere_too(tx, table, columns):
    with pytest.raises(psycopg.errors.CheckViolation):
        insert(tx, table, **columns)


@pytest.mark.parametrize("state", JobState)
def test_every_state_has_a_legal_row(tx, state):
    assert insert_job(tx, state) > 0


def test_one_tenant_has_one_live_job_a_dedupe_key(tx):
    insert_job(tx, JobState.QUEUED, dedupe_key="k")
    insert_job(tx, JobState.QUEUED, dedupe_key="k", tenant_id="acme")
    insert_job(tx, JobState.FAILED, dedupe_key="k")

    with pytest.raises(psycopg.errors.UniqueViolation, match="jobs_dedupe"):
        insert_job(tx, JobState.RUNNING, dedupe_key="k")


def test_a_running_attempt_has_no_row(tx):
    with pytest.raises(psycopg.errors.CheckViolation):
        insert_attempt(tx, 1, status="running")


@pytest.mark.parametrize("columns", [{}, {"tenant_id": "acme"}, {"state": "failed"}])
def test_there_is_one_retention_for_each_tenant_and_state(tx, columns):
    tx.execute("delete from mainspring.retention")
    insert(tx, "retention", keep="1 day", **columns)

    with pytest.raises(psycopg.errors.UniqueViolation):
        insert(tx, "retention", keep="2 days", **columns)
