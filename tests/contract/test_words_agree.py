"""Words, bounds and zones that stand in Python and in SQL or the API: both say the same.

The verdicts on whole rows are compared in test_rules_agree.py.
"""

import re
from collections.abc import Iterator
from typing import Any, get_args
from zoneinfo import available_timezones

import psycopg
import pytest
from psycopg.types.json import Jsonb
from pydantic import BaseModel

from mainspring.api.models.definitions import NewDefinition
from mainspring.api.models.jobs import NewJob
from mainspring.api.models.schedules import NewSchedule
from mainspring.api.models.tenants import NewTenant
from mainspring.db.template_databases import fresh_database
from mainspring.domain.access.roles import Role
from mainspring.domain.errors import MainspringError
from mainspring.domain.events import DispatchOutcome
from mainspring.domain.jobs.model import FINAL_STATES, LIVE_STATES
from mainspring.domain.jobs.options import APPROVALS, ATTEMPTS, PRIORITIES, OnParentFailure
from mainspring.domain.schedules.cron_fields import FIELDS
from mainspring.domain.schedules.slots import SlotOutcome
from mainspring.domain.schedules.zones import ABBREVIATIONS, find_zone, hint_of_offset
from mainspring.domain.secrets.patterns import NAMES
from mainspring.domain.tenants import WEIGHTS
from mainspring.domain.triggers import UnknownPaths
from mainspring.domain.types import LONGEST_DELAY, AttemptStatus, JobState, Kind, WaitsFor
from tests.support.databases import undone

MOST = 1_000_000_000


@pytest.fixture(scope="module")
def module_url(server_url: str) -> Iterator[str]:
    with fresh_database(server_url) as url:
        yield url


@pytest.fixture
def tx(module_url: str) -> Iterator[psycopg.Connection]:
    with undone(module_url) as connection:
        yield connection


def is_zone(name: str) -> bool:
    try:
        find_zone(name)
    except MainspringError:
        return False
    return True


# The API


def bounds_of(model: type[BaseModel], field: str) -> tuple[Any, Any]:
    schema = model.model_json_schema()["properties"][field]
    (number,) = [each for each in schema.get("anyOf", [schema]) if "maximum" in each]
    return number["minimum"], number["maximum"]


@pytest.mark.parametrize(
    ("model", "field", "low", "high"),
    [
        (NewJob, "priority", PRIORITIES[0], PRIORITIES[-1]),
        (NewJob, "max_attempts", ATTEMPTS[0], ATTEMPTS[-1]),
        (NewJob, "approvals_needed", APPROVALS[0], APPROVALS[-1]),
        (NewJob, "delay", 0, LONGEST_DELAY.total_seconds()),
        (NewDefinition, "priority", PRIORITIES[0], PRIORITIES[-1]),
        (NewDefinition, "max_attempts", ATTEMPTS[0], ATTEMPTS[-1]),
        (NewDefinition, "approvals_needed", APPROVALS[0], APPROVALS[-1]),
        (NewDefinition, "timeout", 0, LONGEST_DELAY.total_seconds()),
        (NewDefinition, "concurrency", 0, MOST),
        (NewDefinition, "burst", 1, MOST),
        (NewSchedule, "priority", PRIORITIES[0], PRIORITIES[-1]),
        (NewSchedule, "max_attempts", 1, 1000),
        (NewSchedule, "max_running", 1, 1000),
        (NewSchedule, "max_retries", 1, 1000),
        (NewSchedule, "catch_up_limit", 1, 10_000),
        (NewSchedule, "run_timeout", 0, LONGEST_DELAY.total_seconds()),
        (NewTenant, "weight", WEIGHTS[0], WEIGHTS[-1]),
    ],
)
def test_the_api_documents_the_bounds_of_the_domain(model, field, low, high):
    assert bounds_of(model, field) == (low, high)


# Zones and cron

OTHER_ZONES = [
    "",
    "Nowhere",
    "utc",
    "europe/berlin",
    "UTC+3",
    "EST5EDT4",
    "PDT",
    "+02",
    "America",
    "Factory",
    "posixrules",
    "right/UTC",
    "posix/UTC",
]


def test_a_time_zone_exists_for_both_or_for_neither(tx):
    zones = sorted({*available_timezones(), *OTHER_ZONES} - {"localtime"})
    found = tx.execute(
        "select name, mainspring.is_zone(name) from unnest(%s::text[]) as name", (zones,)
    ).fetchall()

    assert dict(found) == {zone: is_zone(zone) for zone in zones}


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("UTC+3", "did you mean 'Etc/GMT-3'? That is 3 hours ahead of UTC: the signs of these "),
        ("gmt-12", "did you mean 'Etc/GMT+12'? That is 12 hours behind UTC: the signs of these "),
        ("+05:00", "did you mean 'Etc/GMT-5'? That is 5 hours ahead of UTC: the signs of these "),
        ("UTC+14", "did you mean 'Etc/GMT-14'? "),
        ("UTC+15", None),
        ("UTC-13", None),
        ("UTC+0", None),
        ("UTC3", None),
        ("XYZ+3", None),
        ("+05:30", None),
        ("EST5", "did you mean 'America/New_York'?"),
        ("cst+6", "did you mean 'America/Chicago' or 'Asia/Shanghai'?"),
        ("America/New_York5", None),
    ],
)
def test_an_offset_gets_the_same_hint_from_both(tx, name, hint):
    ((said,),) = tx.execute("select mainspring.hint_of_offset(%s)", (name,)).fetchall()

    assert said == hint_of_offset(name)
    assert said is None if hint is None else said.startswith(hint)


def test_an_abbreviation_stands_for_the_same_zones_for_both(tx):
    names = [*ABBREVIATIONS, "XYZ"]
    found = tx.execute(
        "select name, mainspring.zones_of_abbreviation(lower(name))"
        "  from unnest(%s::text[]) as name",
        (names,),
    ).fetchall()

    assert {name: tuple(known) for name, known in found if known} == ABBREVIATIONS


def test_a_cron_field_holds_the_same_for_both(tx):
    found = tx.execute(
        "select field.name, field.low, field.high, field.spread_high, field.size,"
        "       coalesce(field.names, '{}')"
        "  from generate_series(1, 5) as place, mainspring.cron_place(place) as field"
    ).fetchall()

    assert found == [
        (field.name, field.low, field.high, field.spread_high, field.size, list(field.names))
        for field in FIELDS
    ]


# Words

CONSTRAINT = """
select pg_get_constraintdef(oid) from pg_constraint
 where conrelid = %s::regclass and contype = 'c' and pg_get_constraintdef(oid) ~ %s
"""


def words_of(tx: psycopg.Connection, table: str, column: str) -> set[str]:
    """The words that a constraint lets a column hold."""
    found = tx.execute(CONSTRAINT, (f"mainspring.{table}", rf"\({column}.* = ANY")).fetchall()
    (definition,) = [text for (text,) in found if f"({column} = ANY" in text]
    (listed,) = re.findall(rf"\({column} = ANY \(+ARRAY\[(.*?)\]", definition)
    return set(re.findall(r"'([^']*)'", listed))


@pytest.mark.parametrize(
    ("type_name", "known"),
    [
        ("job_state", JobState),
        ("waits_for", WaitsFor),
        ("attempt_outcome", AttemptStatus),
        ("slot_outcome", SlotOutcome),
    ],
)
def test_a_type_has_the_words_of_python(tx, type_name, known):
    ((labels,),) = tx.execute(f"select enum_range(null::mainspring.{type_name})::text[]").fetchall()

    assert set(labels) == {str(word) for word in known}


@pytest.mark.parametrize(
    ("table", "column", "known"),
    [
        ("jobs", "state", LIVE_STATES),
        ("jobs_history", "state", FINAL_STATES),
        ("definitions", "kind", Kind),
        ("people", "role", set(Role) - {Role.WORKER}),
        ("tokens", "role", Role),
        ("dispatches", "outcome", DispatchOutcome),
        ("triggers", "unknown_paths", UnknownPaths),
        ("dependencies", "on_failure", get_args(OnParentFailure)),
    ],
)
def test_a_column_holds_the_words_of_python(tx, table, column, known):
    assert words_of(tx, table, column) == {str(word) for word in known}


# Secrets


@pytest.mark.parametrize("spelling", [str.lower, str.upper, "x_{}".format, "my{}".format])
def test_what_stands_under_the_name_of_a_secret_is_hidden_by_both(tx, spelling):
    value = {spelling(name): "hunter2" for name in (*NAMES, "authorization")}
    ((shown,),) = tx.execute("select mainspring.shown_value(%s)", (Jsonb(value),)).fetchall()

    assert set(shown.values()) == {"[redacted]"}
