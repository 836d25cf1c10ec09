"""Housekeeping: what comes with Mainspring, and when a database needs an operator."""

from dataclasses import replace

import pytest

from mainspring.domain.batches import Aside
from mainspring.domain.errors import InvalidPayload
from mainspring.domain.housekeeping import (
    DEFINITIONS,
    PRUNE_TABLE,
    QUEUE,
    IndexSize,
    ServerHealth,
    TableHealth,
    problems,
    report,
)
from mainspring.domain.schedules.defaults import SCHEDULES
from mainspring.domain.schedules.model import ensure_spec
from mainspring.domain.schemas import Schema

TABLE = TableHealth("jobs", live=10, dead=5, vacuumed_seconds_ago=60.0, bytes=8192)
SERVER = ServerHealth(None, None, None, transaction_id_age=1000, is_autovacuum_on=True)
WORST = TableHealth("jobs", live=99_999, dead=100_000, vacuumed_seconds_ago=3601.0, bytes=8192)


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


def test_nothing_is_wrong_with_a_database_that_is_well():
    assert problems([TABLE], SERVER) == []


@pytest.mark.parametrize(
    "changes",
    [{"dead": 99_999}, {"live": 100_000}, {"vacuumed_seconds_ago": 3600.0}],
)
def test_dead_rows_of_a_busy_queue_are_no_problem(changes):
    assert problems([replace(WORST, **changes)], SERVER) == []


@pytest.mark.parametrize("changes", [{}, {"vacuumed_seconds_ago": None}])
def test_many_dead_rows_that_nobody_removes_are(changes):
    (sentence,) = problems([replace(WORST, **changes)], SERVER)

    assert sentence.startswith("mainspring.jobs has 100,000 dead rows and 99,999 live ones")


@pytest.mark.parametrize(("seconds", "count"), [(3600.0, 0), (3601.0, 1)])
def test_a_transaction_may_be_open_for_an_hour(seconds, count):
    server = replace(
        SERVER,
        oldest_transaction_seconds=seconds,
        oldest_transaction_pid=7,
        oldest_transaction_application="report",
    )

    found = problems([TABLE], server)

    assert len(found) == count
    assert all("a transaction of report (pid 7) has been open for 1.0 hours" in x for x in found)


@pytest.mark.parametrize(("age", "count"), [(1_000_000_000, 0), (1_000_000_001, 1)])
def test_transaction_ids_must_not_run_out(age, count):
    assert len(problems([TABLE], replace(SERVER, transaction_id_age=age))) == count


def test_autovacuum_must_be_on():
    (sentence,) = problems([TABLE], replace(SERVER, is_autovacuum_on=False))

    assert sentence == "autovacuum is off; turn it on"


def test_the_report_has_everything():
    found = report([WORST], SERVER)

    assert found["tables"][0]["dead"] == 100_000
    assert found["server"]["is_autovacuum_on"] is True
    assert len(found["problems"]) == 1


def test_a_job_that_is_set_aside_is_a_problem():
    aside = Aside("promote", key=7, tries=3, seconds_left=9.0, reason="index row too large")

    (sentence,) = problems([TABLE], SERVER, [aside])

    assert sentence == (
        "job 7 was set aside by promote 3 times, since it cannot be processed: "
        "index row too large; mend or delete it"
    )


@pytest.mark.parametrize(
    ("size", "entries", "is_bloated"),
    [(64_000_000, 0, True), (1_000_000, 1000, True), (999_999, 1000, False)],
)
def test_an_index_is_bloated_when_it_is_ten_times_its_content(size, entries, is_bloated):
    assert IndexSize("jobs_ready", size, entries, is_valid=True).is_bloated is is_bloated
