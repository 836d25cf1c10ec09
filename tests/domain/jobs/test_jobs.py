"""Jobs: which moves are legal, and what an enqueue may ask."""

import re
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mainspring.domain.errors import IllegalMove, InvalidOption, InvalidPayload
from mainspring.domain.jobs import model
from mainspring.domain.jobs.model import FINAL_STATES, LIVE_STATES, MOVES, Job, ensure_can_move
from mainspring.domain.jobs.options import (
    EnqueueFields,
    EnqueueOptions,
    ensure_payload,
    holds_nul,
)
from mainspring.domain.jobs.outcomes import Snooze
from mainspring.domain.types import LONGEST_DELAY, JobId, JobState, TenantId

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
TICK = timedelta(microseconds=1)


def make_job(state: JobState) -> Job:
    return Job(
        id=JobId(7),
        tenant_id=TenantId("default"),
        definition="send",
        queue="mail",
        state=state,
        priority=100,
        payload={},
        created_at=NOON,
        scheduled_for=NOON,
    )


def with_option(name: str, value: Any) -> EnqueueOptions:
    """Options that hold a dedupe key, for those that need one."""
    given = {"dedupe_key": "k", name: value}
    return EnqueueOptions(**given)


def test_every_option_can_be_given_as_a_keyword():
    assert list(EnqueueFields.__annotations__) == [field.name for field in fields(EnqueueOptions)]


# Moves


def test_every_state_is_live_or_final_and_has_its_moves():
    assert LIVE_STATES | FINAL_STATES == frozenset(JobState) == MOVES.keys()
    assert not LIVE_STATES & FINAL_STATES


def test_the_picture_in_the_docstring_names_every_state():
    assert set(re.findall(r"[a-z_]+", model.__doc__ or "")) >= set(JobState)


@pytest.mark.parametrize("state", JobState)
@pytest.mark.parametrize("target", JobState)
def test_a_move_is_allowed_exactly_when_it_is_listed(state, target):
    if target in MOVES[state]:
        ensure_can_move(make_job(state), target)
    else:
        with pytest.raises(IllegalMove, match=f"job 7 is {state}; it cannot become {target}"):
            ensure_can_move(make_job(state), target)


def test_only_a_queued_job_can_be_claimed():
    assert [state for state in JobState if JobState.RUNNING in MOVES[state]] == [JobState.QUEUED]


def test_only_a_running_job_can_succeed_and_then_nothing_follows():
    before = [state for state in JobState if JobState.SUCCEEDED in MOVES[state]]

    assert before == [JobState.RUNNING]
    assert MOVES[JobState.SUCCEEDED] == frozenset()


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.DEAD_LETTER, JobState.CANCELED])
def test_an_unsuccessful_job_can_only_be_retried(state):
    assert MOVES[state] == {JobState.QUEUED, JobState.BLOCKED, JobState.AWAITING_APPROVAL}


@pytest.mark.parametrize("state", JobState)
def test_a_job_is_final_when_its_state_is(state):
    assert make_job(state).is_final is (state in FINAL_STATES)


# Options, both sides of every boundary


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("priority", 0),
        ("priority", 1000),
        ("max_attempts", 1),
        ("max_attempts", 1000),
        ("delay", timedelta(0)),
        ("scheduled_for", NOON),
        ("deadline", NOON),
        ("queue", "q" * 500),
        ("dedupe_key", "k" * 500),
        ("idempotency_key", "k" * 500),
        ("correlation_id", "é\n"),
        ("tenant_id", "acme"),
        ("tags", ("t",) * 50),
        ("on_duplicate", "existing"),
        ("dedupe_by", "content"),
    ],
)
def test_an_option_inside_its_range_is_kept(option, value):
    assert getattr(EnqueueOptions(**{option: value}), option) == value


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("priority", -1, "from 0"),
        ("priority", 1001, "to 1000"),
        ("priority", True, "whole number"),
        ("priority", 1.0, "whole number"),
        ("priority", "1", "whole number"),
        ("max_attempts", 0, "from 1 to 1000, not 0"),
        ("max_attempts", 1001, "from 1 to 1000, not 1001"),
        ("max_attempts", "3", "from 1 to 1000, not 3"),
        ("delay", -TICK, "must not be negative"),
        ("delay", 5, "must be a timedelta, not int"),
        ("scheduled_for", "2026-01-01", "must be a datetime, not str"),
        ("scheduled_for", NOON.replace(tzinfo=None), "must have a time zone"),
        ("deadline", NOON.replace(tzinfo=None), "must have a time zone"),
        ("queue", "", "must not be empty"),
        ("queue", "a,b", "comma"),
        ("queue", " a", "start or end with a space"),
        ("queue", "q" * 501, "at most 500 characters"),
        ("dedupe_key", "", "must not be empty"),
        ("dedupe_key", "k" * 501, "at most 500 characters"),
        ("dedupe_key", "a\x00b", "NUL byte"),
        ("dedupe_key", 7, "must be a string, not int"),
        ("idempotency_key", "", "must not be empty"),
        ("correlation_id", "\x00", "NUL byte"),
        ("tenant_id", "", "must not be empty"),
        ("tags", ("t",) * 51, "must have at most 50 entries, not 51"),
        ("tags", ("",), "must not be empty"),
        ("on_duplicate", "ignore", "must be 'raise' or 'existing', not 'ignore'"),
        ("dedupe_by", "payload", "must be 'content', not 'payload'"),
    ],
)
def test_an_option_outside_its_range_is_refused_by_name(option, value, problem):
    with pytest.raises(InvalidOption, match=re.escape(problem)) as refused:
        EnqueueOptions(**{option: value})
    assert refused.value.option == option
    assert str(refused.value).startswith(option)


@pytest.mark.parametrize("option", ["dedupe_key", "correlation_id", "queue", "tenant_id"])
def test_text_that_is_no_unicode_is_refused(option):
    with pytest.raises(InvalidOption, match=f"^{option} "):
        with_option(option, "\ud800")


@pytest.mark.parametrize("option", ["delay", "dedupe_window"])
def test_a_duration_beyond_what_the_database_can_add_is_refused(option):
    with_option(option, LONGEST_DELAY)
    with pytest.raises(InvalidOption, match=f"^{option} must be at most 36500 days"):
        with_option(option, LONGEST_DELAY + TICK)


def test_a_job_may_be_due_up_to_the_instant_before_its_deadline():
    EnqueueOptions(scheduled_for=NOON - TICK, deadline=NOON)
    with pytest.raises(InvalidOption, match="scheduled_for is not before the deadline"):
        EnqueueOptions(scheduled_for=NOON, deadline=NOON)


def test_delay_and_scheduled_for_exclude_each_other():
    with pytest.raises(InvalidOption, match="delay and scheduled_for cannot be used together"):
        EnqueueOptions(delay=SECOND, scheduled_for=NOON)


def test_dedupe_key_and_dedupe_by_exclude_each_other():
    with pytest.raises(InvalidOption, match="dedupe_by and dedupe_key cannot be used together"):
        EnqueueOptions(dedupe_key="k", dedupe_by="content")


@pytest.mark.parametrize("given", [{"dedupe_key": "k"}, {"dedupe_by": "content"}])
def test_a_window_needs_something_to_compare_and_a_length(given):
    EnqueueOptions(dedupe_window=TICK, **given)
    with pytest.raises(InvalidOption, match="dedupe_window must be more than zero"):
        EnqueueOptions(dedupe_window=timedelta(0), **given)
    with pytest.raises(InvalidOption, match="dedupe_window needs dedupe_key"):
        EnqueueOptions(dedupe_window=SECOND)


# Payloads and answers


@pytest.mark.parametrize("payload", [[], "{}", None, 7, (("a", 1),)])
def test_a_payload_that_is_no_object_is_refused(payload):
    with pytest.raises(InvalidPayload, match=f"not {type(payload).__name__}"):
        ensure_payload(payload)


@pytest.mark.parametrize(
    "value", ["a\x00", {"a\x00": 1}, {"a": ["b", {"c": "\x00"}]}, ["x", ("\x00",)]]
)
def test_a_nul_is_found_wherever_it_is(value):
    assert holds_nul(value)


@pytest.mark.parametrize("value", ["\\u0000", {"a": [1, None, True, "b"]}, 0, None])
def test_what_holds_no_nul_passes(value):
    assert not holds_nul(value)


def test_a_snooze_may_be_zero_but_not_negative():
    assert Snooze(timedelta(0)).delay == timedelta(0)
    with pytest.raises(InvalidOption, match="Snooze delay must not be negative"):
        Snooze(-TICK)


def test_a_snooze_that_would_break_the_workers_report_is_refused():
    with pytest.raises(InvalidOption, match="Snooze delay must be at most 36500 days"):
        Snooze(timedelta.max)
