"""Bulk operations: which jobs they are about, where those are, and how far an operation is."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from mainspring.domain.errors import InvalidOption
from mainspring.domain.jobs.filters import JobFilter, read_filter, write_filter
from mainspring.domain.operations import (
    STATES,
    Change,
    Operation,
    Sweep,
    ensure_sensible,
    read_operation,
    refused,
)
from mainspring.domain.types import BulkAction, JobSource, JobState, TenantId

NOW = datetime(2026, 1, 31, tzinfo=UTC)
ACME = TenantId("acme")


def rooms(action: BulkAction, **asked: Any) -> tuple[str, ...]:
    return Operation(action, JobFilter.of(**asked), ACME).stages


def test_each_action_has_the_states_that_a_single_one_has():
    assert set(STATES[BulkAction.CANCEL]) == {"awaiting_approval", "blocked", "queued", "running"}
    assert set(STATES[BulkAction.RETRY]) == {"failed", "dead_letter", "canceled"}
    assert set(JobState) - set(STATES[BulkAction.DELETE]) == {"running"}


def test_jobs_are_looked_for_where_they_can_be_and_nowhere_else():
    assert rooms(BulkAction.CANCEL) == ("live",)
    assert rooms(BulkAction.RETRY) == ("failed", "dead_letter", "canceled")
    assert rooms(BulkAction.RETRY, state=JobState.FAILED) == ("failed",)
    assert rooms(BulkAction.RETRY, created_by="ann") == ("ended",)
    assert rooms(BulkAction.DELETE) == ("live", "ended")
    assert rooms(BulkAction.DELETE, state=JobState.SUCCEEDED) == ("ended",)
    assert rooms(BulkAction.DELETE, state=JobState.QUEUED) == ("live",)


def test_only_a_retry_minds_when_a_job_ended():
    for action in BulkAction:
        operation = Operation(action, JobFilter.of(queue="a"), ACME, started_at=NOW)

        assert operation.ended_before == (NOW if action is BulkAction.RETRY else None)


def test_every_job_is_meant_only_where_that_is_said():
    ensure_sensible(BulkAction.DELETE, JobFilter(), is_all=True)
    ensure_sensible(BulkAction.DELETE, JobFilter.of(queue="a"), is_all=False)
    with pytest.raises(InvalidOption, match="filter is empty"):
        ensure_sensible(BulkAction.DELETE, JobFilter(), is_all=False)
    with pytest.raises(InvalidOption, match="all and a filter cannot be used together"):
        ensure_sensible(BulkAction.DELETE, JobFilter.of(queue="a"), is_all=True)


def test_a_state_goes_with_the_actions_that_can_move_it():
    for action in BulkAction:
        for state in JobState:
            if state in STATES[action]:
                ensure_sensible(action, JobFilter.of(state=state), is_all=False)
            else:
                with pytest.raises(InvalidOption, match=f"state {state} cannot be combined with"):
                    ensure_sensible(action, JobFilter.of(state=state), is_all=False)


def test_a_span_of_time_has_to_have_a_length():
    second = timedelta(seconds=1)
    span = JobFilter(created_after=NOW, created_before=NOW + second)
    ensure_sensible(BulkAction.CANCEL, span, is_all=False)
    with pytest.raises(InvalidOption, match="no job can match"):
        ensure_sensible(
            BulkAction.CANCEL, JobFilter(created_after=NOW, created_before=NOW), is_all=False
        )


def test_a_payload_says_the_same_as_the_operation():
    asked = JobFilter.of(
        state=JobState.FAILED,
        queue="mail",
        definition="send",
        source=JobSource.API,
        tag="blue",
        created_after=NOW,
        created_before=NOW + timedelta(days=1),
        error="disk",
        created_by="ann",
    )
    written = write_filter(asked)
    payload = {"action": "retry", "filter": written, "actor": "ann", "total": 7}

    operation = read_operation(payload, tenant_id=ACME, started_at=NOW)

    assert written["state"] == "failed"
    assert operation == Operation(
        BulkAction.RETRY, asked, ACME, actor="ann", total=7, started_at=NOW
    )


def test_a_payload_may_name_several_values_or_be_of_the_previous_release():
    asked = JobFilter.of(state=["failed", "canceled"], tag=["blue", "red"])

    assert read_filter(write_filter(asked)) == asked
    assert read_filter({"status": "failed"}) == JobFilter.of(state="failed")


def test_several_states_are_looked_for_one_after_the_other():
    assert rooms(BulkAction.RETRY, state=["canceled", "failed"]) == ("canceled", "failed")
    assert rooms(BulkAction.RETRY, created_by=["ann", "bob"]) == (
        "failed",
        "dead_letter",
        "canceled",
    )
    with pytest.raises(InvalidOption, match="state running cannot be combined with retry"):
        ensure_sensible(BulkAction.RETRY, JobFilter.of(state=["failed", "running"]), is_all=False)


def test_the_creator_of_a_payload_is_stronger_than_its_filter():
    payload = {"action": "retry", "filter": {"created_by": "bob"}, "actor": "e", "creator": "eve"}

    operation = read_operation(payload, tenant_id=ACME, started_at=NOW)

    assert operation.asked.created_by == ("eve",)


def test_a_sweep_goes_on_from_its_checkpoint_and_accounts_for_all():
    sweep = Sweep(total=10).moved(700).noted(Change(4, {"gone": 1}, (5, 6)))
    sweep = sweep.without_first().noted(Change(0, {"gone": 1, "running": 1}))

    assert Sweep.read({**asdict(sweep), "busy": [6]}) == sweep
    assert (sweep.after, sweep.done, sweep.busy) == (700, 7, (6,))
    assert sweep.moved(None) == Sweep(1, 0, 4, {"gone": 2, "running": 1}, (6,), 10)
    assert sweep.ended().skipped == {"gone": 2, "running": 1, "changed_meanwhile": 3}
    assert sweep.ended().result(BulkAction.CANCEL) == {
        "action": "cancel",
        "changed": 4,
        "skipped": 6,
        "reasons": {"gone": 2, "running": 1, "changed_meanwhile": 3},
    }


def test_a_sweep_names_the_first_jobs_that_were_refused():
    sweep = Sweep()
    for job_id in range(1, 103):
        sweep = sweep.noted(refused(job_id, "x" * 1000))

    assert Sweep.read(orjson.loads(orjson.dumps(sweep.saved()))) == sweep
    result = sweep.result(BulkAction.DELETE)
    assert result["reasons"] == {"refused": 102}
    assert [each["job_id"] for each in result["refused"]] == [str(n) for n in range(1, 101)]
    assert all(len(each["error"]) < 300 for each in result["refused"])


def test_a_checkpoint_of_another_release_can_be_read():
    assert Sweep.read({"after": 7, "busy": [1], "moon": "full"}) == Sweep(after=7, busy=(1,))
