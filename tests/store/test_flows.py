"""Dependencies and flows in the database: who goes when, and what failure does."""

import json
from typing import Any

import psycopg
import pytest

from mainspring.db.statements import load
from tests.support.calls import call, enqueue
from tests.support.rows import count, insert_definition, job, refused

UNKNOWN = 10**12


def finish(tx: psycopg.Connection, job_id: int, state: str = "succeeded") -> None:
    """End a job as a worker would, whatever it waits for."""
    tx.execute(
        "with ended as (delete from mainspring.jobs where job_id = %s returning *)"
        " insert into mainspring.jobs_history (job_id, created_at, scheduled_for, finished_at,"
        " state, tenant_id, queue, definition, payload, result) select job_id, created_at,"
        " scheduled_for, now(), %s::mainspring.job_state, tenant_id, queue, definition, payload,"
        " '{\"from\": 1}' from ended",
        (job_id, state),
    )


def settle(tx: psycopg.Connection) -> int:
    """Settle until nothing is left to do; how much that was."""
    total = 0
    while True:
        ((is_ours, settled),) = tx.execute(
            "select is_ours, settled from mainspring.settle_parents(null, 1000)"
        ).fetchall()
        assert is_ours
        if not settled:
            return total
        total += settled


def states(tx: psycopg.Connection, *job_ids: int) -> list[str]:
    return [job(tx, job_id)["state"] for job_id in job_ids]


def flow(tx: psycopg.Connection, *steps: dict[str, Any]) -> tuple[int, list[int]]:
    row = tx.execute(
        "select flow_id, job_ids from mainspring.enqueue_flow('nightly', %s)", (json.dumps(steps),)
    ).fetchone()
    assert row is not None
    return row[0], row[1]


# One job after others


def test_a_job_is_blocked_until_its_parents_have_succeeded(tx):
    parents = [enqueue(tx), enqueue(tx)]
    child = enqueue(tx, after=parents)
    assert states(tx, child) == ["blocked"]
    finish(tx, parents[0])
    settle(tx)
    assert states(tx, child) == ["blocked"]

    finish(tx, parents[1])
    settle(tx)

    assert states(tx, child) == ["queued"]


def test_a_parent_that_had_succeeded_before_lets_its_child_go(tx):
    parent = enqueue(tx)
    finish(tx, parent)
    child = enqueue(tx, after=[parent])

    settle(tx)

    assert states(tx, child) == ["queued"]


@pytest.mark.parametrize("how", ["failed", "dead_letter", "canceled"])
def test_a_parent_that_does_not_succeed_cancels_what_comes_after_it(tx, how):
    parent = enqueue(tx)
    child = enqueue(tx, after=[parent])
    grandchild = enqueue(tx, after=[child])
    finish(tx, parent, how)

    settle(tx)

    assert states(tx, child, grandchild) == ["canceled", "canceled"]
    assert job(tx, child)["last_error"] == f"its parent, job {parent}, is {how}"


def test_one_failure_cancels_at_once_while_other_parents_go_on(tx):
    parents = [enqueue(tx), enqueue(tx)]
    child = enqueue(tx, after=parents)
    finish(tx, parents[0], "failed")

    settle(tx)

    assert states(tx, child, parents[1]) == ["canceled", "queued"]


def test_a_child_may_continue_after_a_failure(tx):
    parents = [enqueue(tx), enqueue(tx)]
    child = enqueue(tx, after=parents, on_parent_failure="continue")
    finish(tx, parents[0], "failed")
    settle(tx)
    assert states(tx, child) == ["blocked"]

    finish(tx, parents[1])
    settle(tx)

    assert states(tx, child) == ["queued"]


def test_a_child_may_wait_until_a_failed_parent_is_retried(tx):
    parent = enqueue(tx)
    child = enqueue(tx, after=[parent], on_parent_failure="wait")
    finish(tx, parent, "failed")
    settle(tx)
    assert states(tx, child) == ["blocked"]

    call(tx, "retry", parent)
    finish(tx, parent)
    settle(tx)

    assert states(tx, child) == ["queued"]


@pytest.mark.parametrize("policy", ["cancel", "wait"])
def test_a_parent_that_was_deleted_cancels_its_child(tx, policy):
    parent, failed = enqueue(tx), enqueue(tx)
    finish(tx, failed, "failed")
    children = [enqueue(tx, after=[p], on_parent_failure=policy) for p in (parent, failed)]
    for deleted in (parent, failed):
        call(tx, "delete_job", deleted)

    settle(tx)

    assert states(tx, *children) == ["canceled", "canceled"]


def test_a_parent_that_does_not_exist_is_refused(tx):
    with refused(tx, "MS030", f"there is no job {UNKNOWN}", job_id=UNKNOWN):
        enqueue(tx, after=[UNKNOWN])


def test_a_parent_of_another_tenant_is_refused(tx):
    theirs = enqueue(tx, tenant="acme")

    with refused(tx, "MS030", f"there is no job {theirs}", job_id=theirs):
        enqueue(tx, after=[theirs])


def test_what_to_do_on_failure_is_one_of_three(tx):
    parent = enqueue(tx)

    with refused(tx, "MS003", "on_parent_failure must be", option="on_parent_failure"):
        enqueue(tx, after=[parent], on_parent_failure="panic")


def test_a_child_that_needs_approval_waits_for_both(tx):
    parent = enqueue(tx)
    child = enqueue(tx, after=[parent], approvals_needed=1)
    assert call(tx, "approve", child) == ["blocked"]

    finish(tx, parent)
    settle(tx)

    assert states(tx, child) == ["queued"]


def test_a_child_is_not_let_go_by_its_parents_before_it_is_approved(tx):
    parent = enqueue(tx)
    child = enqueue(tx, after=[parent], approvals_needed=1)
    finish(tx, parent)
    settle(tx)
    assert states(tx, child) == ["awaiting_approval"]

    assert call(tx, "approve", child) == ["queued"]


def test_a_child_waits_for_its_time_and_its_limit_afterwards(tx):
    insert_definition(tx, "capped", concurrency=1)
    parent = enqueue(tx)
    late = enqueue(tx, after=[parent], delay="1 hour")
    limited = enqueue(tx, "capped", after=[parent])
    finish(tx, parent)

    settle(tx)

    assert [job(tx, each)["waits_for"] for each in (late, limited)] == ["time", "limit"]


def test_while_another_settles_nothing_is_settled(tx, module_url):
    with psycopg.connect(module_url) as other:
        other.execute("select pg_advisory_xact_lock(hashtext('mainspring.flows'))")

        row = tx.execute("select is_ours, settled from mainspring.settle_parents(null, 10)")

        assert row.fetchone() == (False, 0)


# Flows


DIAMOND = (
    {"definition": "work", "step": "top"},
    {"definition": "work", "after": [0]},
    {"definition": "work", "after": [0]},
    {"definition": "work", "step": "bottom", "after": [1, 2]},
)


def test_a_diamond_runs_from_the_top_to_the_bottom(tx):
    _, (top, left, right, bottom) = flow(tx, *DIAMOND)
    assert states(tx, top, left, right, bottom) == ["queued", "blocked", "blocked", "blocked"]
    finish(tx, top)
    settle(tx)
    assert states(tx, left, right, bottom) == ["queued", "queued", "blocked"]
    for each in (left, right):
        finish(tx, each)

    settle(tx)

    assert states(tx, bottom) == ["queued"]


def summary(tx: psycopg.Connection, flow_id: int) -> tuple[Any, ...] | None:
    return tx.execute(
        "select state, jobs, live, succeeded, failed, canceled from mainspring.flow_status"
        " where flow_id = %s",
        (flow_id,),
    ).fetchone()


def test_a_flow_has_a_summary(tx):
    flow_id, job_ids = flow(tx, *DIAMOND)
    assert summary(tx, flow_id) == ("running", 4, 4, 0, 0, 0)
    for job_id in job_ids:
        finish(tx, job_id)

    assert summary(tx, flow_id) == ("succeeded", 4, 0, 4, 0, 0)


def test_a_flow_with_a_failure_has_failed(tx):
    flow_id, (top, *_) = flow(tx, *DIAMOND)
    finish(tx, top, "failed")
    settle(tx)

    assert summary(tx, flow_id) == ("failed", 4, 0, 0, 1, 3)


def test_a_flow_can_be_canceled_as_a_whole(tx):
    flow_id, job_ids = flow(tx, *DIAMOND)
    finish(tx, job_ids[0])

    assert call(tx, "cancel_flow", flow_id, reason="not tonight") == [3]
    assert summary(tx, flow_id) == ("canceled", 4, 0, 1, 0, 3)
    assert job(tx, job_ids[3])["last_error"] == "not tonight"


def test_a_flow_can_be_retried_from_where_it_failed(tx):
    flow_id, (top, left, right, bottom) = flow(tx, *DIAMOND)
    finish(tx, top)
    finish(tx, left)
    finish(tx, right, "failed")
    settle(tx)
    assert states(tx, bottom) == ["canceled"]

    assert call(tx, "retry_flow", flow_id) == [2]

    assert states(tx, top, left, right, bottom) == ["succeeded", "succeeded", "queued", "blocked"]
    finish(tx, right)
    settle(tx)
    assert states(tx, bottom) == ["queued"]


def test_a_flow_of_another_tenant_is_not_there(tx):
    flow_id, _ = flow(tx, *DIAMOND)

    for function in ("cancel_flow", "retry_flow"):
        with refused(tx, "MS070", f"there is no flow {flow_id}", flow_id=flow_id):
            call(tx, function, flow_id, tenant="acme")


def test_a_flow_of_ten_thousand_is_one_call(tx):
    top: dict[str, Any] = {"definition": "work"}
    sides = [{"definition": "work", "after": [0]} for _ in range(9998)]
    bottom = {"definition": "work", "after": list(range(1, 9999))}

    flow_id, job_ids = flow(tx, top, *sides, bottom)

    assert len(set(job_ids)) == 10_000
    assert summary(tx, flow_id) == ("running", 10_000, 10_000, 0, 0, 0)
    assert count(tx, "dependencies") == 9998 * 2


def test_a_flow_with_too_many_steps_is_refused(tx):
    with refused(tx, "MS003", "at most 10000 steps, not 10001", option="steps"):
        flow(tx, *({"definition": "work"} for _ in range(10_001)))


def test_a_flow_with_too_many_parents_is_refused(tx):
    parents = [{"definition": "work"} for _ in range(251)]
    children = [{"definition": "work", "after": list(range(250))} for _ in range(200)]
    assert flow(tx, *parents, *children)

    one_more = {"definition": "work", "after": [250]}
    message = "at most 50000 parents together, not 50001"
    with refused(tx, "MS003", message, option="steps"):
        flow(tx, *parents, *children, one_more)


def test_a_job_with_too_many_parents_is_refused(tx):
    with refused(tx, "MS003", "after can have at most 10000 entries, not 10001", option="after"):
        enqueue(tx, after=list(range(10_001)))


def test_a_large_flow_is_canceled_and_settled_in_short_statements(tx):
    parents = [{"definition": "work"} for _ in range(100)]
    children = [{"definition": "work", "after": list(range(100))} for _ in range(200)]
    flow_id, job_ids = flow(tx, *parents, *children)
    tx.execute("set local statement_timeout = '2s'")

    assert tx.execute("select mainspring.cancel_flow(%s)", (flow_id,)).fetchone() == (300,)
    assert settle(tx) == 20_000
    assert summary(tx, flow_id) == ("canceled", 300, 0, 0, 0, 300)
    page = {"job_id": 0, "parent_id": 0, "limit": 2000}
    row = tx.execute(load("flows")["prune_dependencies"].sql, page).fetchone()
    assert row == (2000, 0, job_ids[119], job_ids[99])


def test_steps_keep_what_they_are_given(tx):
    insert_definition(tx, "capped", concurrency=1, limit_by=["user"])
    _, (first, second) = flow(
        tx,
        {
            "definition": "capped",
            "payload": {"user": 7},
            "queue": "mail",
            "priority": 3,
            "max_attempts": 9,
            "tags": ["t"],
            "correlation_id": "c",
            "step": "one",
        },
        {"definition": "work", "delay": 3600, "approvals_needed": 2, "after": [0]},
    )

    row = job(tx, first)
    assert (row["queue"], row["priority"], row["max_attempts"]) == ("mail", 3, 9)
    assert (row["tags"], row["correlation_id"], row["waits_for"]) == (["t"], "c", "limit")
    assert states(tx, second) == ["awaiting_approval"]


@pytest.mark.parametrize(
    ("steps", "message"),
    [
        ([], "steps must be a JSON array with at least one step"),
        ({}, "steps must be a JSON array with at least one step"),
        ([1], "step 0 must be an object"),
        ([{"definition": "work", "payload": [1]}], "step 0 must be an object"),
        ([{"definition": "work", "after": 0}], "step 0 must be an object"),
        ([{"definition": "work", "after": [0]}], "step 0 comes after 0, which is not the number"),
        ([{"definition": "work", "after": [1]}, {"definition": "work"}], "step 0 comes after 1"),
        ([{"definition": "work"}, {"definition": "work", "after": [-1]}], "step 1 comes after -1"),
        ([{"definition": "work"}, {"definition": "work", "after": ["0"]}], "step 1 comes after"),
        ([{"definition": "work", "on_parent_failure": "panic"}], "on_parent_failure must be"),
        ([{"definition": "work", "approvals_needed": 101}], "approvals_needed must be from 0"),
        ([{"definition": "work", "limit_key": "a"}], "limit_key is given, but work has no limit"),
    ],
)
def test_a_flow_that_cannot_be_is_refused_whole(tx, steps, message):
    with refused(tx, "MS003", message, option="steps"):
        call(tx, "enqueue_flow", "nightly", json.dumps(steps))

    assert (count(tx, "flows"), count(tx, "jobs")) == (0, 0)


def test_a_step_of_an_unknown_definition_is_refused_by_its_key(tx):
    with refused(tx, "MS010", "unknown definition 'nope'", key="nope"):
        flow(tx, {"definition": "work"}, {"definition": "nope"})


def test_a_step_may_come_after_a_job_that_exists(tx):
    parent = enqueue(tx)
    _, (child,) = flow(tx, {"definition": "work", "after_jobs": [parent]})
    finish(tx, parent)

    settle(tx)

    assert states(tx, child) == ["queued"]


def test_a_step_after_a_job_that_does_not_exist_is_refused(tx):
    with refused(tx, "MS030", f"there is no job {UNKNOWN}", job_id=UNKNOWN):
        flow(tx, {"definition": "work", "after_jobs": [UNKNOWN]})
