"""Tables and indexes: both sides of every bound."""

from dataclasses import replace

import pytest

from mainspring.domain.checks import tables
from mainspring.domain.checks.tables import (
    Foreign,
    InvalidIndex,
    Leftovers,
    Partitions,
    Relation,
    Storage,
    TableActivity,
)

WORST = TableActivity("jobs", 100_000, 100_001, 3601.0, is_analyzed=True, changed=0)
MIB = 1024**2


def severities(found) -> list[str]:
    return [str(each.severity) for each in found]


@pytest.mark.parametrize("changes", [{}, {"vacuumed_seconds_ago": None}])
def test_many_dead_rows_that_nobody_removes_are_found(changes):
    assert severities(tables.dead_rows([replace(WORST, **changes)])) == ["warning"]


@pytest.mark.parametrize(
    "changes", [{"dead": 100_000}, {"live": 100_001}, {"vacuumed_seconds_ago": 3600.0}]
)
def test_dead_rows_of_a_busy_queue_are_fine(changes):
    assert tables.dead_rows([replace(WORST, **changes)]) == []


@pytest.mark.parametrize(
    ("relation", "expected"),
    [
        (Relation("jobs", 256 * MIB, 0), []),
        (Relation("jobs", 256 * MIB + 1, 0), ["warning"]),
        (Relation("jobs", 800_000_000, 100_000), []),
        (Relation("jobs", 800_000_001, 100_000), ["warning"]),
        (Relation("jobs_ready", 400_000_000, 200_000), []),
        (Relation("jobs_ready", 400_000_001, 200_000), ["warning"]),
    ],
)
def test_a_relation_may_have_twenty_times_its_content(relation, expected):
    assert severities(tables.bloat([relation])) == expected


def test_only_what_a_rebuild_left_is_for_fix():
    shipped = frozenset({"jobs_ready"})
    names = (("jobs_ready_ccnew", True), ("mine", False), ("jobs_ready", False))
    known = [InvalidIndex(name, "jobs", is_ours) for name, is_ours in names]

    left, mine, ours = tables.invalid_indexes(known, shipped)

    assert "doctor --fix" in left.advice
    assert mine.advice == 'drop index concurrently mainspring."mine";'
    assert ours.advice == "reindex index concurrently mainspring.jobs_ready;"


def test_what_is_not_ours_is_dropped_by_its_kind():
    index, rule = tables.foreign_objects(
        [Foreign("index", "mine", "jobs"), Foreign("rule", "mine", "jobs")]
    )

    assert index.advice == 'drop index mainspring."mine";'
    assert rule.advice == 'drop rule "mine" on mainspring.jobs;'


def test_storage_parameters_are_set_and_reset():
    changed = Storage(
        "jobs", {"fillfactor": "100", "autovacuum_enabled": "off"}, {"fillfactor": "90"}
    )
    same = Storage("slots", {"fillfactor": "85"}, {"fillfactor": "85"})

    (found,) = tables.storage([changed, same])

    assert found.advice == (
        "alter table mainspring.jobs set (fillfactor = 90); "
        "alter table mainspring.jobs reset (autovacuum_enabled);"
    )


@pytest.mark.parametrize(
    ("is_analyzed", "live", "changed", "expected"),
    [
        (False, 999, 0, False),
        (False, 1000, 0, True),
        (True, 1000, 10_000, False),
        (True, 1000, 10_001, True),
        (True, 2000, 20_000, False),
        (True, 2000, 20_001, True),
    ],
)
def test_statistics_must_be_known(is_analyzed, live, changed, expected):
    table = TableActivity("jobs", live, 0, None, is_analyzed, changed)

    assert bool(tables.statistics([table])) is expected


def test_partitions_must_be_there_a_day_ahead():
    assert tables.partitions(Partitions([], [])) == []
    found = tables.partitions(Partitions(["attempts"], ["jobs_history"]))
    assert severities(found) == ["warning", "note"]


def test_what_retention_should_have_removed_is_found():
    assert tables.leftovers(Leftovers([], 0)) == []
    assert len(tables.leftovers(Leftovers(["attempts_20200101"], 1))) == 2


@pytest.mark.parametrize(("rows", "count"), [(1_000_000, 0), (1_000_001, 1)])
def test_a_million_keys_are_fine(rows, count):
    assert len(tables.unused([], [Relation("buckets", 0, rows)])) == count


@pytest.mark.parametrize(("size", "count"), [(1024**3, 0), (1024**3 + 1, 1)])
def test_a_gib_needs_no_note(size, count):
    assert len(tables.largest([Relation("jobs", size, 0)], "30 days")) == count


def test_history_that_is_kept_for_ever_is_given_an_end():
    (ever,) = tables.largest([Relation("jobs", 2 * 1024**3, 0)], None)

    assert "kept for ever" in ever.meaning
    assert ever.advice.startswith("insert into mainspring.retention")
