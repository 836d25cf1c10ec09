"""Housekeeping: what comes with Mainspring, and which payloads it takes."""

import pytest

from mainspring.domain.errors import InvalidPayload
from mainspring.domain.housekeeping import (
    DEFINITIONS,
    DOCTOR,
    PRUNE_TABLE,
    QUEUE,
    VACUUM_CHECK,
    IndexSize,
)
from mainspring.domain.schedules.defaults import SCHEDULES
from mainspring.domain.schedules.model import ensure_spec
from mainspring.domain.schemas import Schema


def test_every_built_in_definition_has_a_reserved_key_and_the_queue_of_all_workers():
    assert all(each.key.startswith("mainspring.") for each in DEFINITIONS)
    assert {each.queue for each in DEFINITIONS} == {QUEUE}
    assert all(each.description for each in DEFINITIONS)


def test_the_default_schedules_are_sound_and_name_built_in_definitions():
    for spec in SCHEDULES:
        ensure_spec(spec)
    assert {spec.definition for spec in SCHEDULES} < {each.key for each in DEFINITIONS}


GOOD = {"table": "civic.sessions", "column": "seen_at", "older_than_days": 30}


@pytest.mark.parametrize("changes", [{}, {"batch_size": 1}, {"batch_size": 100_000, "max_rows": 1}])
def test_a_payload_that_says_which_rows_to_prune_passes(changes):
    Schema("prune", PRUNE_TABLE.arg_schema or {}).ensure({**GOOD, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        *({"table": 7}, {"column": None}, {"older_than_days": 0}, {"older_than_seconds": 5}),
        *({"batch_size": 0}, {"batch_size": 100_001}, {"max_rows": 0}, {"colum": "x"}),
    ],
)
def test_a_payload_that_does_not_is_refused(changes):
    with pytest.raises(InvalidPayload):
        Schema("prune", PRUNE_TABLE.arg_schema or {}).ensure({**GOOD, **changes})


def test_a_payload_without_an_age_is_refused():
    bare = {name: value for name, value in GOOD.items() if name != "older_than_days"}

    with pytest.raises(InvalidPayload):
        Schema("prune", PRUNE_TABLE.arg_schema or {}).ensure(bare)


@pytest.mark.parametrize(
    "payload",
    [{}, {"only": ["D13"]}, {"ignore": ["D24", "D41"]}, {"fail_on": "critical"}],
)
def test_a_payload_of_the_doctor_names_checks(payload):
    Schema("doctor", DOCTOR.arg_schema or {}).ensure(payload)


@pytest.mark.parametrize("payload", [{"only": "D13"}, {"ignore": ["13"]}, {"fail_on": "note"}])
def test_other_payloads_of_the_doctor_are_refused(payload):
    with pytest.raises(InvalidPayload):
        Schema("doctor", DOCTOR.arg_schema or {}).ensure(payload)


def test_the_doctor_takes_what_its_earlier_name_takes():
    assert VACUUM_CHECK.arg_schema == DOCTOR.arg_schema


@pytest.mark.parametrize(
    ("size", "entries", "is_bloated"),
    [(64_000_000, 0, True), (1_000_000, 1000, True), (999_999, 1000, False)],
)
def test_an_index_is_bloated_when_it_is_ten_times_its_content(size, entries, is_bloated):
    assert IndexSize("jobs_ready", size, entries, is_valid=True).is_bloated is is_bloated
