"""Rules that stand in Python and in SQL: both give the same verdict at, below and above each bound.

Cron expressions are compared in tests/store/test_cron_checks.py, the paths of secrets in
tests/store/test_redaction.py.
"""

from datetime import UTC, datetime, timedelta

import pytest
from psycopg.types.json import Jsonb

from mainspring.domain import limits
from mainspring.domain.definitions import Definition
from mainspring.domain.flows import MOST_BYTES, MOST_DEPENDENCIES, MOST_STEPS
from mainspring.domain.jobs.backoff import Backoff
from mainspring.domain.jobs.options import (
    MAX_JOBS,
    MAX_PARENTS,
    MAX_PAYLOAD_BYTES,
    EnqueueOptions,
)
from mainspring.domain.schedules.cron import DstFold, DstGap
from mainspring.domain.schedules.model import ScheduleSpec, ensure_spec
from mainspring.domain.schedules.slots import CatchUp, Overlap
from mainspring.domain.tenants import WEIGHTS, ensure_max_running, ensure_name, ensure_weight
from mainspring.services.payloads import encode_payload
from tests.support.agreement import (
    TICK,
    Row,
    call,
    durations,
    either,
    insert,
    numbers,
    python_accepts,
    queues,
    sql_accepts,
    tags,
    texts,
    words,
)

MOST = 1_000_000_000
SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)


# Schedules

SCHEDULES = [
    *(*numbers("priority", 0, 1000), *numbers("max_attempts", 1, 1000)),
    *(*numbers("max_running", 1, 1000), *numbers("max_retries", 1, 1000)),
    *numbers("catch_up_limit", 1, 10_000),
    *(*durations("jitter", timedelta(0)), *durations("misfire_grace", timedelta(0))),
    *(*durations("catch_up_max_age", SECOND), *durations("run_timeout", SECOND)),
    *durations("condition_timeout", SECOND / 1000, DAY),
    *(({"cron": None, **row}, verdict) for row, verdict in durations("every", SECOND)),
    *(*words("dst_gap", DstGap), *words("dst_fold", DstFold)),
    *(*words("catch_up", CatchUp), *words("overlap", Overlap)),
    *(*texts("name", 200), *queues(), *either("name", ["a b"], [" ", "\t\n"])),
    *either("definition", ["x", "x" * 200], ["", " ", "x" * 201]),
    *either("description", ["", "ü" * 10_000], ["ü" * 10_001]),
    *either("launcher", ["x", "x" * 500], ["", " ", "x" * 501]),
    *either("condition_sql", ["select true", "x" * 10_000], ["", " ", "x" * 10_001]),
    *either("payload", [{}], [[], "x"]),
    *(
        ({"gauge_sql": "select 1", "gauge_lower": low, "gauge_upper": high}, verdict)
        for low, high, verdict in [
            *((1, 1, True), (1, 2, True), (2, 1, False), (None, 1, False), (1, None, False)),
            *((1, float("inf"), False), (float("-inf"), 1, False)),
            (float("nan"), float("nan"), False),
        ]
    ),
    ({"gauge_lower": 1.0, "gauge_upper": 2.0}, False),
    ({"gauge_sql": " ", "gauge_lower": 1.0, "gauge_upper": 2.0}, False),
    ({"launcher": "x", "condition_sql": "select true"}, False),
    ({"cron": None}, False),
    ({"every": SECOND}, False),
    (
        {
            "starts_at": datetime(2030, 1, 1, tzinfo=UTC),
            "ends_at": datetime(2030, 1, 1, tzinfo=UTC),
        },
        False,
    ),
]


@pytest.mark.parametrize(("row", "verdict"), SCHEDULES, ids=str)
def test_a_schedule_is_accepted_by_both_or_by_neither(tx, row, verdict):
    spec = {"name": "tick", "definition": "work", "cron": "@daily", **row}
    columns = {**spec, "payload": Jsonb(spec.get("payload", {}))}

    assert python_accepts(lambda: ensure_spec(ScheduleSpec(**spec))) is verdict
    assert sql_accepts(tx, insert("schedules", columns), columns) is verdict


# Jobs

JOBS = [
    *(*numbers("priority", 0, 1000), *numbers("max_attempts", 1, 1000)),
    *numbers("approvals_needed", 0, 100),
    *durations("delay", timedelta(0)),
    *(({"dedupe_key": "k", **row}, verdict) for row, verdict in durations("dedupe_window", TICK)),
    *(*queues(), *texts("dedupe_key", 500), *texts("idempotency_key", 500)),
    *(*texts("limit_key", 500), *texts("correlation_id", 500), *tags()),
    *words("on_duplicate", ["raise", "existing"]),
    *words("dedupe_by", ["content"]),
    ({"dedupe_by": "content", "dedupe_key": "k"}, False),
    ({"dedupe_window": SECOND}, False),
    ({"delay": SECOND, "scheduled_for": datetime(2030, 1, 1, tzinfo=UTC)}, False),
]


@pytest.mark.parametrize(("row", "verdict"), JOBS, ids=str)
def test_the_options_of_an_enqueue_are_accepted_by_both_or_by_neither(tx, row, verdict):
    arguments = {"definition": "limited" if "limit_key" in row else "work", **row}

    assert python_accepts(lambda: EnqueueOptions(**row)) is verdict
    assert sql_accepts(tx, call("enqueue", arguments), arguments) is verdict


@pytest.mark.parametrize(
    ("row", "verdict"), [*queues(), *texts("correlation_id", 500), *tags()], ids=str
)
@pytest.mark.parametrize("function", ["enqueue_many", "enqueue_flow", "enqueue with a key"])
def test_the_words_of_a_job_are_accepted_by_every_function_or_by_none(tx, row, verdict, function):
    if function == "enqueue_flow":
        step = {"definition": "work", **row}
        arguments: Row = {"name": "flow", "steps": Jsonb([step])}
    elif function == "enqueue_many":
        arguments = {"definition": "work", "payloads": [Jsonb({})], **row}
    else:
        # With a key it is no plain job, for which a fast path decides.
        arguments = {"definition": "work", "idempotency_key": "k", **row}

    name = function.partition(" ")[0]
    assert sql_accepts(tx, call(name, arguments), arguments) is verdict


@pytest.mark.parametrize(
    ("size", "verdict"), [(MAX_PAYLOAD_BYTES, True), (MAX_PAYLOAD_BYTES + 1, False)]
)
def test_a_payload_may_have_as_many_bytes_in_both(tx, size, verdict):
    # Each counts them as it writes JSON itself: SQL with a space after the colon.
    compact = {"x": "y" * (size - len('{"x":""}'))}
    spaced = {"x": "y" * (size - len('{"x": ""}'))}
    arguments = {"definition": "work", "payload": Jsonb(spaced)}

    assert python_accepts(lambda: encode_payload(compact)) is verdict
    assert sql_accepts(tx, call("enqueue", arguments), arguments) is verdict


# Definitions

APPROVERS = [
    (["ü" * 500], True),
    (["x"] * 100, True),
    ([""], False),
    (["ü" * 501], False),
    (["x"] * 101, False),
]
DEFINITIONS = [
    *(*numbers("priority", 0, 1000), *numbers("max_attempts", 1, 1000)),
    *numbers("approvals_needed", 0, 100),
    *(*durations("timeout", TICK), *durations("retention", timedelta(0))),
    *(
        ({"approvals_needed": 1, **row}, verdict)
        for row, verdict in durations("approval_expiry", TICK)
    ),
    *(*queues(), *tags(), *either("description", ["", "ü" * 10_000], ["ü" * 10_001])),
    *(({"approvals_needed": 1, "approvers": names}, verdict) for names, verdict in APPROVERS),
    *(*numbers("concurrency", 0, MOST), *numbers("key_concurrency", 0, MOST)),
    *(({"rate": "1/s", **row}, verdict) for row, verdict in numbers("burst", 1, MOST)),
    *either("key", ["a", "_", "A.b:c-1", "x" * 200], ["", "1a", "a b", "a/b", "ü", "x" * 201]),
]
BACKOFFS = [
    *(*durations("base", timedelta(0)), *durations("cap", timedelta(0))),
    *durations("jitter", timedelta(0)),
    *either("factor", [1.0, 2.5, 1e9], [0.99, 0.0, -1.0, 1.1e9, float("inf"), float("nan")]),
]


@pytest.mark.parametrize(("row", "verdict"), DEFINITIONS, ids=str)
def test_a_definition_is_accepted_by_both_or_by_neither(tx, row, verdict):
    columns = {"key": "mail", **row}
    definition = columns.copy()
    columns = {"kind": "python", **columns}
    if columns.pop("rate", None):
        columns |= {"rate_count": 1, "rate_period": SECOND}

    assert python_accepts(lambda: Definition(**definition)) is verdict
    assert sql_accepts(tx, insert("definitions", columns), columns) is verdict


@pytest.mark.parametrize(("row", "verdict"), BACKOFFS, ids=str)
def test_a_backoff_is_accepted_by_both_or_by_neither(tx, row, verdict):
    columns = {"key": "mail", "kind": "python"} | {
        f"backoff_{name}": value for name, value in row.items()
    }

    assert python_accepts(lambda: Backoff(**row)) is verdict
    assert sql_accepts(tx, insert("definitions", columns), columns) is verdict


# Limits and tenants

LIMITS = [
    *either("name", ["a", "_", "A.b:c-1", "x" * 200], ["", "1a", "a b", "ü", "x" * 201]),
    *(*numbers("concurrency", 0, MOST), *numbers("key_concurrency", 0, MOST)),
    *numbers("burst", 1, MOST),
]


@pytest.mark.parametrize(("row", "verdict"), LIMITS, ids=str)
def test_a_limit_is_accepted_by_both_or_by_neither(tx, row, verdict):
    arguments = {"name": "mail", **row}

    assert python_accepts(lambda: limits.Limit(**arguments)) is verdict
    assert sql_accepts(tx, call("set_limit", arguments), arguments) is verdict


@pytest.mark.parametrize(
    ("row", "verdict"),
    [*numbers("weight", WEIGHTS[0], WEIGHTS[-1]), *either("max_running", [0, None], [-1])],
    ids=str,
)
def test_a_tenant_is_accepted_by_both_or_by_neither(tx, row, verdict):
    check = ensure_weight if "weight" in row else ensure_max_running
    columns = {"tenant_id": "acme", **row}

    assert python_accepts(lambda: check(*row.values())) is verdict
    assert sql_accepts(tx, insert("tenants", columns), columns) is verdict


@pytest.mark.parametrize(
    ("name", "verdict"), [("x", True), ("x" * 200, True), ("x" * 201, False), ("", False)]
)
def test_a_tenant_has_a_name_for_both_or_for_neither(tx, name, verdict):
    assert python_accepts(lambda: ensure_name(name)) is verdict
    assert sql_accepts(tx, insert("tenants", ["tenant_id"]), {"tenant_id": name}) is verdict


# Flows


def test_a_flow_may_be_as_large_in_both(tx):
    bounds = "select mainspring.most_steps(), mainspring.most_dependencies()"
    assert tx.execute(bounds).fetchone() == (MOST_STEPS, MOST_DEPENDENCIES)
    assert tx.execute("select mainspring.most_parents()").fetchone() == (MAX_PARENTS,)
    assert tx.execute("select mainspring.most_flow_bytes()").fetchone() == (MOST_BYTES,)


def test_a_call_may_enqueue_as_many_jobs_in_both(tx):
    assert tx.execute("select mainspring.most_jobs()").fetchone() == (MAX_JOBS,)
