"""The rules of retention policies."""

from datetime import timedelta

import pytest

from mainspring.domain.errors import InvalidOption
from mainspring.domain.retention import (
    RetentionBounds,
    RetentionKind,
    RetentionPolicy,
    applying,
    ensure_keep,
    ensure_kind,
    ensure_no_shorter,
    ensure_state,
    ensure_within,
)
from mainspring.domain.types import LONGEST_DELAY

DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
BOUNDS = RetentionBounds(2 * DAY, 10 * DAY)


def test_a_mistyped_kind_is_answered_with_the_one_that_was_meant():
    with pytest.raises(InvalidOption, match=r"jobs, audit, slots, events, not 'audti'; did you me"):
        ensure_kind("audti")


def test_a_state_is_one_of_finished_jobs():
    assert ensure_state(RetentionKind.JOBS, "failed") == "failed"
    with pytest.raises(InvalidOption, match="did you mean succeeded"):
        ensure_state(RetentionKind.JOBS, "succeded")
    with pytest.raises(InvalidOption, match="must be one of succeeded"):
        ensure_state(RetentionKind.JOBS, "running")


def test_only_jobs_have_states():
    with pytest.raises(InvalidOption, match="slots have no state"):
        ensure_state(RetentionKind.SLOTS, "failed")


@pytest.mark.parametrize(
    ("kind", "least"), [("jobs", timedelta(0)), ("audit", DAY), ("slots", DAY), ("events", DAY)]
)
def test_how_long_things_are_kept_has_bounds(kind: str, least: timedelta):
    known = RetentionKind(kind)

    assert ensure_keep(known, least) == least
    assert ensure_keep(known, LONGEST_DELAY) == LONGEST_DELAY
    for wrong in (least - TICK, LONGEST_DELAY + TICK, "30 days"):
        with pytest.raises(InvalidOption, match=f"must be from {least.days} to 36500 days"):
            ensure_keep(known, wrong)


def test_admins_keep_within_the_bounds_of_their_operator():
    ensure_within(BOUNDS, 2 * DAY)
    ensure_within(BOUNDS, 10 * DAY)
    for wrong in (2 * DAY - TICK, 10 * DAY + TICK):
        with pytest.raises(InvalidOption, match="from 2 to 10 days"):
            ensure_within(BOUNDS, wrong)


def test_what_shows_what_an_admin_did_is_not_kept_shorter():
    ensure_no_shorter(DAY, DAY)
    ensure_no_shorter(DAY, None)
    with pytest.raises(InvalidOption, match="kept for 1 days; ask an operator"):
        ensure_no_shorter(DAY, DAY - TICK)
    with pytest.raises(InvalidOption, match="kept for ever"):
        ensure_no_shorter(None, LONGEST_DELAY)


def test_the_policy_of_a_tenant_comes_before_that_of_everyone():
    policies = [
        RetentionPolicy(RetentionKind.AUDIT, 3 * DAY),
        RetentionPolicy(RetentionKind.AUDIT, 5 * DAY, "acme"),
    ]

    assert applying(policies, RetentionKind.AUDIT, "acme") == 5 * DAY
    assert applying(policies, RetentionKind.AUDIT, "other") == 3 * DAY
    assert applying(policies, RetentionKind.SLOTS, "acme") is None
