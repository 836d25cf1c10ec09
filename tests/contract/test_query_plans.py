"""Query plans on full tables: a million finished jobs, 200,000 queued, with and without statistics.

The worker's statements must touch the rows they are about and no others, whether the tables
were just filled and never analyzed, or analyzed. So each plan is looked at twice.
"""

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from mainspring.db.connect import connection_arguments
from mainspring.db.template_databases import fresh_database
from tests.support.plan_tables import ALIVE, fill
from tests.support.plans import Plan, measure

pytestmark = pytest.mark.xdist_group("query_plans")


RUNNING: dict[str, Any] = {"job_ids": list(range(1, 11)), "fences": list(range(1, 11))}
REPORTS: dict[str, Any] = {
    **RUNNING,
    "worker_id": ALIVE,
    "count": 10,
    "waits": [0] * 10,
    "runs": [0] * 10,
}
FAILURES: dict[str, Any] = {
    "errors": ["broke"] * 10,
    "failures": [1] * 10,
    "statuses": ["failed"] * 10,
    "losses": [0] * 10,
    "error_keys": ["0123456789ab"] * 10,
    "known_keys": ["0123456789ab"],
    "samples": ["broke"],
}
LANES: dict[str, Any] = {
    "queues": ["a"] * 2,
    "priorities": [100, 101],
    "tenants": ["tenant0"] * 2,
    "marks": [0] * 2,
    "untils": [2**63 - 1] * 2,
    "shares": [10] * 2,
}

ANSWERS = {"progress": [None] * 10, "results": [None] * 10}

# By statement of a worker: parameters, the indexes it uses, the pages it may touch.
HOT: dict[str, tuple[dict[str, Any], set[str], int]] = {
    "attempts.discover": ({"queues": ["a", "b"]}, {"jobs_ready", "tenants_pkey"}, 400),
    "attempts.claim": (
        {**LANES, "worker_id": ALIVE, "limit": 10},
        {"jobs_ready", "workers_pkey", "limits_rated"},
        300,
    ),
    "attempts.finish_succeeded": (
        {**REPORTS, "count": 10, "results": ["{}"] * 10, "progress": None},
        {"jobs_pkey", "workers_pkey", "dependencies_open"},
        300,
    ),
    "attempts.finish_ended": (
        {**REPORTS, **FAILURES, **ANSWERS, "states": ["failed"] * 10},
        {"jobs_pkey", "workers_pkey", "dependencies_open"},
        300,
    ),
    "attempts.finish_requeued": (
        {**REPORTS, **FAILURES, "delays": [1_000_000] * 10},
        {"jobs_pkey", "workers_pkey"},
        300,
    ),
    "attempts.hand_back": ({**RUNNING, "waits_for": None}, {"jobs_pkey"}, 300),
    "attempts.report_progress": ({**RUNNING, "progress": ["{}"] * 10}, {"jobs_pkey"}, 300),
    "attempts.mark_begun": (RUNNING, {"jobs_pkey"}, 300),
    "attempts.mark_alone": ({"job_id": 1, "fence": 1}, {"jobs_pkey"}, 50),
    "attempts.lock_lease": ({"job_id": 1, "fence": 1}, {"jobs_pkey"}, 50),
    "work.held_beside": ({"worker_id": ALIVE, "job_ids": [1, 2]}, {"jobs_running"}, 50),
    "attempts.save_checkpoint": ({"job_id": 1, "fence": 1, "checkpoint": "{}"}, {"jobs_pkey"}, 50),
    "attempts.cancel_requests": ({"worker_id": ALIVE}, {"jobs_cancel_requested"}, 50),
    "attempts.held_by": ({"worker_id": ALIVE, "known": [1, 2]}, {"jobs_running"}, 50),
    # Twenty jobs go back to queued within it, each with its entries in ten indexes.
    "recovery.recover": (
        {"now": None, "max_losses": 3, "jitter": "1s", "limit": 1000, "chosen": None},
        {"jobs_running", "jobs_pkey", "set_aside_pkey"},
        400,
    ),
    "recovery.adopt_orphans": ({}, {"jobs_running", "workers_pkey"}, 50),
    "limits.waiting_limit_keys": (
        {"limit_name": "", "key": "", "tenant_id": "", "queue": "", "limit": 100},
        {"jobs_limited"},
        400,
    ),
    "limits.waiting_keys_of_limit": (
        {"limit_name": "busy", "key": "", "tenant_id": "", "queues": ["default"], "limit": 100},
        {"jobs_limited"},
        400,
    ),
    # Twenty jobs of two keys; what it does within is not in its plan, but the pages are.
    "limits.claim_limited": (
        {
            "worker_id": ALIVE,
            "queues": ["default"],
            "names": ["busy"] * 2,
            "keys": ["key 1", "key 2"],
            "tenants": ["default"] * 2,
            "shares": [20] * 2,
            "limit": 20,
            "lowest": 1000,
        },
        set(),
        1200,
    ),
    "processes.oldest_ready": ({}, {"jobs_ready"}, 400),
    "waits.promote": (
        {"now": None, "limit": 10, "chosen": None},
        {"jobs_due", "set_aside_pkey"},
        300,
    ),
    "waits.next_due": ({}, {"jobs_due", "set_aside_pkey"}, 50),
    "waits.release_known": (
        {"definitions": ["work"], "kinds": [], "limit": 10, "chosen": None},
        {"jobs_unhandled", "set_aside_pkey"},
        300,
    ),
    "waits.expire": (
        {"now": None, "limit": 10, "chosen": None},
        {"jobs_deadline", "set_aside_pkey"},
        300,
    ),
    "waits.settle_cancels": (
        {"limit": 10, "chosen": None},
        {"jobs_cancel_requested", "set_aside_pkey"},
        300,
    ),
}
LISTED: dict[str, Any] = {
    "tenant_id": "default",
    **dict.fromkeys(("before", "state", "created_by")),
    "filter": "{}",
    "most": 20_000,
    "limit": 50,
}
RELATED: dict[str, Any] = {"before": None, "most": 10_000}
# By statement on history: parameters, the rows it gives. Readers have ordinary sessions.
ON_HISTORY: dict[str, tuple[dict[str, Any], int]] = {
    "jobs.get": ({"tenant_id": "default", "job_id": -5}, 1),
    "jobs.attempts": ({"tenant_id": "default", "job_id": -5}, 1),
    "jobs.list_jobs": (LISTED, 50),
    "jobs.list_jobs_edge": ({**LISTED, "most": 100}, 1),
    "jobs.list_created_jobs": ({**LISTED, "created_by": "ann"}, 0),
    "jobs.list_created_jobs_edge": ({**LISTED, "created_by": "ann"}, 0),
    "jobs.list_unsuccessful_jobs": ({**LISTED, "state": "failed"}, 0),
    "jobs.list_unsuccessful_jobs_edge": ({**LISTED, "state": "failed"}, 0),
    "jobs.list_scheduled_jobs": ({**LISTED, "schedule_id": 3}, 50),
    "jobs.list_scheduled_jobs_edge": ({**LISTED, "schedule_id": 3, "most": 50}, 1),
    "jobs.list_chosen_jobs": ({**LISTED, "job_ids": [-5, -6]}, 2),
    "jobs.related_jobs": ({**RELATED, "relation": "flow_id", "ids": [7]}, 10),
    "jobs.follow_ups": ({**RELATED, "creators": ["job:1"]}, 0),
    "jobs.load_relations": ({"job_ids": [-5, -6]}, 2),
    "jobs.list_jobs_everywhere": (LISTED, 50),
    "jobs.list_jobs_everywhere_edge": ({**LISTED, "most": 100}, 1),
    "jobs.list_unsuccessful_jobs_everywhere": ({**LISTED, "state": "failed"}, 0),
    "jobs.list_unsuccessful_jobs_everywhere_edge": ({**LISTED, "state": "failed"}, 0),
    "attempts.record_late_reports": (
        {"job_ids": [-1, -2], "fences": [1, 2], "statuses": ["failed"] * 2},
        1,
    ),
}
SOUGHT: dict[str, Any] = {
    "states": ["queued"],
    "asked": '{"definition": "login"}',
    "tenant_id": "default",
    "behind": -500_000,
    "up_to": 1_000_000,
    "ended_before": None,
    "most_seen": 1000,
    "most_found": 500,
}
ENDED = ["succeeded", "failed", "dead_letter", "canceled"]
BY_ANN = '{"created_by": "ann"}'
MOVED: dict[str, Any] = {"tenant_id": "default", "reason": "why", "actor": "ann", "identity": None}
# By step of a bulk operation: statement, parameters, the pages it may touch. What a step looks for
# is rare, and the steps begin in the middle of the tables.
STEPS: dict[str, tuple[str, dict[str, Any], int]] = {
    "look at live jobs": (
        "operations.seek_jobs",
        {**SOUGHT, "section": "live", "behind": 100_000},
        200,
    ),
    "look at ended jobs": (
        "operations.seek_jobs",
        {**SOUGHT, "section": "ended", "states": ENDED},
        200,
    ),
    "look at failed jobs": (
        "operations.seek_jobs",
        {**SOUGHT, "section": "failed", "states": ["failed"]},
        250,
    ),
    "look at someone's live jobs": (
        "operations.seek_jobs",
        {**SOUGHT, "section": "live", "asked": BY_ANN},
        200,
    ),
    "look at someone's ended jobs": (
        "operations.seek_jobs",
        {**SOUGHT, "section": "ended", "states": ENDED, "asked": BY_ANN},
        200,
    ),
    "count live jobs": ("operations.count_jobs", {**SOUGHT, "section": "live"}, 200),
    "cancel jobs": (
        "operations.change_jobs",
        {
            **MOVED,
            "action": "cancel",
            "states": ["queued"],
            "tenant_id": "tenant0",
            "job_ids": [1000, 1005, 1010],
            "is_patient": False,
        },
        500,
    ),
    "delete ended jobs, one of which is gone": (
        "operations.change_jobs",
        {
            **MOVED,
            "action": "delete",
            "states": ENDED,
            "job_ids": [-5, -6, -2_000_000],
            "is_patient": False,
        },
        500,
    ),
}
BY_ADDRESS = ["attempts.claim", "waits.promote", "waits.release_known", "waits.expire"]
ENDING = ["attempts.finish_succeeded", "attempts.finish_ended", "recovery.recover", "waits.expire"]
STATISTICS = ["missing", "fresh"]
PAGES_OF_A_LOOK = 200


def run(connection: psycopg.Connection, name: str, params: dict[str, Any]) -> Plan:
    noun, _, statement = name.partition(".")
    return measure(connection, noun, statement, **params)


@pytest.fixture(scope="module")
def plans(server_url: str) -> Iterator[dict[tuple[str, str], Plan]]:
    """The plan of every statement on full tables, before and after they are analyzed."""
    arguments = connection_arguments(use_pooler=False, pins_plans=True)
    with (
        fresh_database(server_url) as url,
        psycopg.connect(url, **arguments) as worker,
        psycopg.connect(url, autocommit=True) as reader,
    ):
        fill(worker)
        yield dict(all_plans(worker, reader))


def all_plans(
    worker: psycopg.Connection, reader: psycopg.Connection
) -> Iterator[tuple[tuple[str, str], Plan]]:
    for statistics in STATISTICS:
        if statistics == "fresh":
            worker.execute("analyze")
        assert is_analyzed(worker) is (statistics == "fresh")
        for name, (params, *_) in HOT.items():
            yield (statistics, name), run(worker, name, params)
        for name, (params, _) in ON_HISTORY.items():
            session = reader if name.startswith("jobs.") else worker
            yield (statistics, name), run(session, name, params)
        for name, (statement, params, _) in STEPS.items():
            run(reader, statement, params)  # The first call of a function reads the catalogue too.
            yield (statistics, name), run(reader, statement, params)


def is_analyzed(connection: psycopg.Connection) -> bool:
    found = connection.execute("select from pg_stats where schemaname = 'mainspring'")
    return found.fetchone() is not None


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", HOT)
def test_a_worker_reads_no_table_from_end_to_end(plans, statistics, name):
    plan = plans[statistics, name]

    assert plan.sequential() - {"definitions"} == set()
    assert plan.sorts() == []


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", HOT)
def test_a_worker_uses_the_index_made_for_it(plans, statistics, name):
    _, indexes, _ = HOT[name]

    assert plans[statistics, name].indexes() == indexes


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", HOT)
def test_a_worker_touches_few_pages_however_full_the_tables_are(plans, statistics, name):
    _, _, most_pages = HOT[name]

    assert 0 < plans[statistics, name].pages <= most_pages


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", BY_ADDRESS)
def test_rows_that_are_chosen_first_are_then_taken_by_their_address(plans, statistics, name):
    assert ("Tid Scan", "jobs") in plans[statistics, name].scans()


@pytest.mark.parametrize("name", ENDING)
def test_the_function_that_makes_history_rows_is_part_of_the_statement(plans, name):
    functions = {node.get("Function Name") for node in plans["fresh", name].nodes()}

    assert "history_of" not in functions


@pytest.mark.parametrize("statistics", STATISTICS)
def test_a_claim_of_ten_from_200_000_takes_ten(plans, statistics):
    assert plans[statistics, "attempts.claim"].rows == 10
    assert plans[statistics, "attempts.discover"].rows == 30


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", ON_HISTORY)
def test_whoever_looks_for_a_job_touches_few_pages_of_a_million(plans, statistics, name):
    _, rows = ON_HISTORY[name]
    plan = plans[statistics, name]

    assert plan.rows == rows
    assert plan.pages <= PAGES_OF_A_LOOK
    assert plan.sequential() & {"jobs", "jobs_history_default", "attempts_default"} == set()


@pytest.mark.parametrize("statistics", STATISTICS)
@pytest.mark.parametrize("name", STEPS)
def test_a_step_of_an_operation_touches_few_pages_of_a_million(plans, statistics, name):
    _, _, most_pages = STEPS[name]

    assert 0 < plans[statistics, name].pages <= most_pages


def test_a_plan_that_reads_a_whole_table_is_noticed():
    scan = {"Node Type": "Seq Scan", "Relation Name": "jobs"}
    plan = Plan({"Node Type": "Limit", "Plans": [{"Node Type": "Sort", "Plans": [scan]}]})

    assert plan.sequential() == {"jobs"}
    assert plan.sorts() == ["Sort"]
