"""Query plans of the dispatcher: 300,000 handled events, 10,000 triggers, some events that wait."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
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
    "insert into mainspring.tenants (tenant_id) select 't' || n from generate_series(1, 100) as n",
    """
    insert into mainspring.events (event_id, tenant_id, name, context, emitted_at, handled_at)
    select n, 't' || n % 100 + 1, 'provider.changed', '{}', now(), now() - n * interval '1 minute'
      from generate_series(1, 300000) as n
    """,
    """
    insert into mainspring.events (event_id, tenant_id, name, context)
    select 300000 + n, 't' || n % 5 + 1, 'provider.changed', '{}' from generate_series(1, 1000) as n
    """,
    """
    insert into mainspring.dispatches (event_id, trigger_id, replay, outcome, trigger_name, job_id)
    select n, n % 10000 + 1, 0, 'enqueued', 't', n from generate_series(1, 300000) as n
    """,
    """
    insert into mainspring.triggers (tenant_id, name, event, definition)
    select 't' || n % 100 + 1, 'trigger ' || n, 'provider.' || n, 'work'
      from generate_series(1, 10000) as n
    """,
    "set session_replication_role = origin",
]
# By statement: parameters, indexes among those it uses, the pages it may touch.
STATEMENTS: dict[str, tuple[dict[str, Any], set[str], int]] = {
    "events.next_events": (
        {"after": "", "limit": 50, "most_bytes": 1_000_000, "holds": True},
        {"events_unhandled"},
        400,
    ),
    "events.has_unhandled": ({}, {"events_unhandled"}, 20),
    "processes.oldest_event": ({}, {"events_unhandled"}, 50),
    "retention.prune_events": (
        {
            "fallback": "200 days",
            "after": "2000-01-01Z",
            "before": datetime.now(UTC) - timedelta(days=200),
            "limit": 100,
        },
        {"events_handled"},
        900,
    ),
    "triggers.matching_triggers": (
        {"tenants": ["t1", "t2"], "patterns": ["provider.1", "provider.*"], "most": 501},
        {"triggers_event", "definitions_pkey"},
        40,
    ),
}
STATISTICS = ["missing", "fresh"]
READERS: dict[str, dict[str, Any]] = {
    "events.get_event": {"tenant_id": "t2", "event_id": 1},
    "events.list_events": {"tenant_id": "t2", "limit": 50}
    | dict.fromkeys(("before", "patterns", "handled", "failed")),
    "events.list_events_everywhere": {"limit": 50}
    | dict.fromkeys(("before", "patterns", "handled", "failed")),
    "triggers.list_triggers": {"tenant_id": "t2", "limit": 50}
    | dict.fromkeys(("after", "after_tenant", "enabled", "events", "definitions")),
}
PAGES_OF_A_LOOK = 1000


@pytest.fixture(scope="module")
def url(server_url: str) -> Iterator[str]:
    with fresh_database(server_url) as url:
        yield url


@pytest.fixture(scope="module")
def plans(url: str) -> dict[tuple[str, str], Plan]:
    arguments = connection_arguments(use_pooler=False, pins_plans=True)
    with psycopg.connect(url, **arguments) as connection:
        for statement in SEED:
            connection.execute(statement)
        return dict(all_plans(connection))


def all_plans(connection: psycopg.Connection) -> Iterator[tuple[tuple[str, str], Plan]]:
    for statistics in STATISTICS:
        if statistics == "fresh":
            connection.execute("vacuum analyze")
        for name, (params, *_) in STATEMENTS.items():
            yield (statistics, name), run(connection, name, params)


def run(connection: psycopg.Connection, name: str, params: dict[str, Any]) -> Plan:
    noun, _, statement = name.partition(".")
    return measure(connection, noun, statement, **params)


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_dispatcher_reads_no_table_from_end_to_end(plans, statistics, name):
    assert plans[statistics, name].sequential() - {"definitions"} == set()


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_dispatcher_uses_the_index_made_for_it(plans, statistics, name):
    _, indexes, _ = STATEMENTS[name]

    assert indexes <= plans[statistics, name].indexes()


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_dispatcher_touches_few_pages_however_many_events_there_were(plans, statistics, name):
    _, _, most_pages = STATEMENTS[name]

    assert plans[statistics, name].pages <= most_pages


@pytest.mark.parametrize("name", READERS)
def test_whoever_looks_touches_few_pages(plans, url, name):
    with psycopg.connect(url, autocommit=True) as reader:
        plan = run(reader, name, READERS[name])

    assert plan.pages <= PAGES_OF_A_LOOK
    assert plan.sequential() & {"events", "dispatches"} == set()
