"""Plans of what cleans up: each statement looks at a page or a window, however much there is.

A hundred thousand jobs in history, of which one definition has a short retention, and a flow whose
steps have twenty thousand dependencies.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from mainspring.db.connect import connection_arguments
from mainspring.db.template_databases import fresh_database
from tests.support.plans import Plan, measure

SEED = """
insert into mainspring.definitions (key, kind, retention)
values ('work', 'python', null), ('brief', 'python', '1 hour');
insert into mainspring.jobs_history
    (job_id, definition, state, started_at, finished_at, payload)
select n, case when n % 1000 = 0 then 'brief' else 'work' end, 'succeeded', now(),
       now() - interval '6 days' + n * interval '5.184 seconds',
       jsonb_build_object('text', repeat('x', 100))
  from generate_series(1, 100000) as n order by n;
insert into mainspring.flows (flow_id, tenant_id, name, created_at)
select n, 'default', 'flow', now() - interval '1 day' from generate_series(1, 2000) as n;
insert into mainspring.flow_jobs (flow_id, job_id)
select 1 + n / 11, n from generate_series(1, 20000) as n;
insert into mainspring.dependencies (job_id, parent_id, outcome)
select 1000 + n / 100, n % 100, case when n % 2 = 0 then 'succeeded'::mainspring.job_state end
  from generate_series(1, 20000) as n;
"""
# What autovacuum does with each stretch of pages that is full.
SUMMARY = """
select brin_summarize_new_values(indexrelid) from pg_index join pg_class on oid = indexrelid
 where relname ~ '^jobs_history_.*_finished_at_idx$'
"""
NOW = datetime.now(UTC)
WINDOW: dict[str, Any] = {
    "after": NOW - timedelta(hours=1, minutes=15),
    "before": NOW - timedelta(hours=1),
    "chosen": None,
    "limit": 5000,
}
# By statement: parameters, the pages it may touch.
STATEMENTS: dict[str, tuple[dict[str, Any], int]] = {
    "history.prune_jobs": (WINDOW, 2000),
    "flows.prune_flow_jobs": ({"flow_id": 0, "job_id": 0, "limit": 100}, 4000),
    "flows.prune_flows": ({"flow_id": 0, "limit": 100}, 1000),
    "flows.prune_dependencies": ({"job_id": 0, "parent_id": 0, "limit": 2000}, 1500),
    "approvals.prune_approvals": ({"job_id": 0, "limit": 100}, 100),
}


@pytest.fixture(scope="module")
def plans(server_url: str) -> Iterator[dict[tuple[str, bool], Plan]]:
    arguments = connection_arguments(use_pooler=False, pins_plans=True)
    with fresh_database(server_url) as url, psycopg.connect(url, **arguments) as worker:
        worker.execute("set synchronous_commit = off")
        worker.execute(SEED, prepare=False)
        worker.execute(SUMMARY)
        found = {}
        for is_analyzed in (False, True):
            if is_analyzed:
                worker.execute("analyze")
            for name, (params, _) in STATEMENTS.items():
                noun, _, statement = name.partition(".")
                for _ in range(2):  # The first reads the catalogue too.
                    found[name, is_analyzed] = measure(worker, noun, statement, **params)
        yield found


@pytest.mark.parametrize("is_analyzed", [False, True])
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_statement_touches_few_pages(plans, name, is_analyzed):
    plan = plans[name, is_analyzed]

    assert plan.pages <= STATEMENTS[name][1]
    big = {"dependencies", "flow_jobs", "flows", "approvals", "jobs"}
    history = {table for table in plan.sequential() if table.startswith("jobs_history")}
    assert (plan.sequential() & big) | history == set()


def test_one_short_retention_reads_only_what_has_come_of_age(plans):
    plan = plans["history.prune_jobs", True]
    read = sum(
        node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        for node in plan.nodes()
        if node["Node Type"] == "Bitmap Heap Scan" and node["Alias"].startswith("old")
    )

    assert 0 < read < 1000
    assert {name for name in plan.indexes() if "finished_at" in name}
    assert {"dependencies_open", "dependencies_known"} <= plan.indexes()
