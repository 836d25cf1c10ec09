"""Query plans of the scheduler: 100,000 schedules, 300,000 slots, with and without statistics."""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from mainspring.db.connect import connection_arguments
from mainspring.db.template_databases import fresh_database
from tests.support.plans import Plan, measure

pytestmark = pytest.mark.xdist_group("query_plans")

SEED = [
    "set session_replication_role = replica",
    "set synchronous_commit = off",
    "insert into mainspring.definitions (key, kind) values ('work', 'python')",
    # Ten are due, of them five with a condition.
    """
    insert into mainspring.schedules (name, definition, cron, zone, condition_sql, run_timeout)
    select 'schedule ' || n, 'work', '* * * * *', 'UTC',
           case when n % 2 = 0 then 'select true' end, case when n <= 20 then interval '1 hour' end
      from generate_series(1, 100000) as n
    """,
    """
    insert into mainspring.clocks (schedule_id, definition, plan_key, is_plain, next_slot_at,
                                   next_run_at, checking_until, checking_by)
    select n, 'work', gen_random_uuid(), n % 2 = 1, due, due,
           case when n between 900 and 910 then now() + interval '1 minute' end,
           case when n between 900 and 910 then 'someone' end
      from generate_series(1, 100000) as n,
           lateral (select date_trunc('minute', now())
                           + case when n > 10 then n * interval '1 minute' else '0' end) as at (due)
    """,
    """
    insert into mainspring.slots
        (schedule_id, scheduled_for, outcome, job_id, run_state, counted_as, finished_at)
    select n % 30000 + 1, now() - n * interval '1 minute', 'enqueued', n, 'succeeded',
           case when n > 20 then 'succeeded' end, now()
      from generate_series(1, 300000) as n
    """,
    """
    insert into mainspring.slots (schedule_id, scheduled_for, outcome, trigger)
    select n, now() + interval '1 second', 'pending', 'manual' from generate_series(1, 5) as n
    """,
    """
    insert into mainspring.jobs (job_id, definition, schedule_id, slot_at, waits_for)
    select 1000000 + n, 'work', n, now() - interval '1 minute',
           case when n <= 10 then 'turn'::mainspring.waits_for end
      from generate_series(11, 50000) as n
    """,
    "set session_replication_role = origin",
    "select brin_summarize_new_values('mainspring.slots_age')",
]
SETS: dict[str, Any] = {
    "schedule_ids": [1, 3, 5],
    "revisions": [0, 0, 0],
    "firsts": [1],
    "lasts": [3],
    "next_slots": ["2999-01-01T00:00:00Z"],
}
# By statement: parameters, indexes among those it uses, the pages it may touch.
STATEMENTS: dict[str, tuple[dict[str, Any], set[str], int]] = {
    "due_schedules.due": (
        {"now": None, "late": "0", "limit": 1000, "skip": 0},
        {"clocks_due"},
        200,
    ),
    "due_schedules.due_checks": (
        {"now": None, "late": "0", "limit": 10, "identity": "me"},
        {"clocks_due"},
        400,
    ),
    "due_schedules.next_fire": ({}, {"clocks_due"}, 20),
    "due_schedules.fire": (
        {
            **SETS,
            "slots": ["2999-01-01T00:00:00Z"],
            "definitions": ["work"],
            "places": '{"(0,1)","(0,3)","(0,5)"}',
        },
        {"schedules_pkey", "definitions_pkey"},
        200,
    ),
    "due_schedules.advance": (SETS, {"clocks_pkey", "schedules_pkey"}, 200),
    "due_schedules.checkers": ({}, {"clocks_checking"}, 60),
    "due_schedules.drop_checks": ({"identities": ["nobody"]}, {"clocks_checking"}, 60),
    "due_schedules.overdue_runs": (
        {"limit": 10, "chosen": None},
        {"schedules_watched", "jobs_schedule"},
        200,
    ),
    "due_schedules.find_overdue": ({"limit": 10}, {"schedules_watched", "jobs_schedule"}, 200),
    "due_schedules.release_turns": ({"chosen": None}, {"jobs_turn"}, 60),
    "due_schedules.find_turns": ({}, {"jobs_turn"}, 60),
    "slots.pending_slots": (
        {"limit": 10, "identity": "me"},
        {"slots_pending", "schedules_pkey"},
        200,
    ),
    "slots.count_runs": ({"limit": 1000}, {"slots_uncounted"}, 900),
    "retention.prune_slots": (
        {
            "fallback": "1000 days",
            "after": "2000-01-01Z",
            "before": "2001-01-01Z",
            "limit": 1000,
        },
        set(),
        # Of a table without statistics the whole of the primary key, once an hour.
        2000,
    ),
}
STATISTICS = ["missing", "fresh"]


@pytest.fixture(scope="module")
def plans(server_url: str) -> Iterator[dict[tuple[str, str], Plan]]:
    arguments = connection_arguments(use_pooler=False, pins_plans=True)
    with fresh_database(server_url) as url, psycopg.connect(url, **arguments) as connection:
        for statement in SEED:
            connection.execute(statement)
        yield dict(all_plans(connection))


def all_plans(connection: psycopg.Connection) -> Iterator[tuple[tuple[str, str], Plan]]:
    for statistics in STATISTICS:
        if statistics == "fresh":
            connection.execute("vacuum analyze")
        for name, (params, *_) in STATEMENTS.items():
            noun, _, statement = name.partition(".")
            yield (statistics, name), measure(connection, noun, statement, **params)


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_scheduler_reads_no_table_from_end_to_end(plans, statistics, name):
    assert plans[statistics, name].sequential() - {"definitions"} == set()


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_scheduler_uses_the_index_made_for_it(plans, statistics, name):
    _, indexes, _ = STATEMENTS[name]

    assert indexes <= plans[statistics, name].indexes()


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_scheduler_touches_few_pages_however_many_schedules_there_are(plans, statistics, name):
    _, _, most_pages = STATEMENTS[name]

    assert plans[statistics, name].pages <= most_pages


@pytest.mark.parametrize("statistics", STATISTICS)
def test_firing_finds_clocks_by_the_place_of_their_row(plans, statistics):
    assert (
        plans[statistics, "due_schedules.fire"].indexes().isdisjoint({"clocks_due", "clocks_pkey"})
    )


def test_old_slots_are_found_by_age(plans):
    plan = plans["fresh", "retention.prune_slots"]

    assert "slots_age" in plan.indexes()
    assert plan.pages <= 200
