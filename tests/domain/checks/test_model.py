"""Findings: their order, and what they make of an exit code and of a job."""

import pytest

from mainspring.domain.checks.model import (
    Finding,
    Report,
    Severity,
    as_facts,
    exit_code,
    graded,
    identifier,
    literal,
    problems,
    several,
    size,
    span,
    word,
    worst_first,
)

NOTE = Finding("D04", Severity.NOTE, "no timeout", "meaning", "set it")
WARNING = Finding("D13", Severity.WARNING, "an index is invalid", "meaning", "drop it")
CRITICAL = Finding("D17", Severity.CRITICAL, "fsync is off", "meaning", "turn it on")


@pytest.mark.parametrize(
    ("severities", "code"),
    [([], 0), (["note"], 0), (["note", "warning"], 1), (["warning", "critical"], 2)],
)
def test_the_worst_finding_is_the_exit_code(severities, code):
    assert exit_code(severities) == code


def test_the_worst_finding_comes_first_and_then_the_lowest_id():
    assert worst_first([NOTE, CRITICAL, WARNING]) == [CRITICAL, WARNING, NOTE]


@pytest.mark.parametrize(
    ("value", "severity"),
    [(10, None), (10.1, Severity.WARNING), (20, Severity.WARNING), (20.1, Severity.CRITICAL)],
)
def test_a_value_above_a_bound_is_worse(value, severity):
    assert graded(value, 10, 20) is severity


def test_a_job_fails_for_what_is_as_urgent_as_it_asks():
    found = [CRITICAL, WARNING, WARNING, NOTE]

    assert problems(found, fail_on=Severity.CRITICAL) == [
        "D17 (critical): meaning; see `mainspring doctor --only D17`"
    ]
    assert len(problems(found, fail_on=Severity.WARNING)) == 2
    assert problems(found, fail_on=Severity.WARNING, ignore=["D13", "D17"]) == []


def test_a_result_counts_findings_and_has_no_facts_that_name_tenants():
    facts = as_facts(Report(["D04", "D13"], [WARNING, WARNING, NOTE]))

    assert facts["findings"] == [
        {"id": "D13", "severity": "warning", "count": 2},
        {"id": "D04", "severity": "note", "count": 1},
    ]
    assert facts["checked"] == ["D04", "D13"]
    assert WARNING.fact not in str(facts)
    assert WARNING.advice not in str(facts)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (119, "119 seconds"),
        (120, "2 minutes"),
        (7199, "120 minutes"),
        (7200, "2.0 hours"),
        (172_799, "48.0 hours"),
        (172_800, "2 days"),
    ],
)
def test_durations_are_in_their_largest_sensible_unit(seconds, text):
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(10_239, "10,239 bytes"), (10_240, "10 KiB"), (2**40, "1,024 GiB")]
)
def test_sizes_are_too(count, text):
    assert size(count) == text


def test_names_that_others_chose_are_quoted_for_sql_and_the_shell():
    assert literal("nightly's") == "'nightly''s'"
    assert identifier('mine"; drop') == '"mine""; drop"'
    assert word("nightly") == "nightly"
    assert word("x; rm -rf ~") == "'x; rm -rf ~'"


def test_many_names_are_cut():
    assert several(["a", "b", "c"], 2) == "a, b and 1 more"
    assert several(["a", "b"], 2) == "a, b"
