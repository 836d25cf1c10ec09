"""Schedules with one plan key are planned as one, so what decides their slots must all be in it."""

import pytest
from psycopg.types.json import Jsonb

from tests.support.schedules import insert_schedule

BASE = {"cron": "0 3 * * *", "definition": "work"}
KEYS = "select plan_key from mainspring.clocks order by schedule_id"


def keys(tx) -> list[str]:
    return [str(key) for (key,) in tx.execute(KEYS)]


@pytest.mark.parametrize(
    "columns",
    [
        {"cron": "0 4 * * *"},
        {"cron": "@every 5m"},
        {"cron": None, "every": "1 hour"},
        {"cron": None, "at": "2030-01-01T00:00:00Z"},
        {"zone": "Europe/Berlin"},
        {"dst_gap": "skip"},
        {"dst_fold": "both"},
        {"calendar": Jsonb({"weekends": True})},
        {"starts_at": "2030-01-01T00:00:00Z"},
        {"ends_at": "2030-01-01T00:00:00Z"},
        {"paused_until": "2030-01-01T00:00:00Z"},
        {"misfire_grace": "1 hour"},
        {"catch_up": "all"},
        {"catch_up_limit": 7},
        {"catch_up_max_age": "1 hour"},
        {"definition": "other"},
    ],
    ids=str,
)
def test_whatever_decides_the_slots_is_in_the_key(tx, columns):
    insert_schedule(tx, "a", **BASE)
    insert_schedule(tx, "b", **{**BASE, **columns})

    one, other = keys(tx)
    assert one != other


@pytest.mark.parametrize(
    "columns",
    [
        {"payload": Jsonb({"n": 1})},
        {"queue": "mail"},
        {"jitter": "1 minute"},
        {"overlap": "queue"},
        {"anchor_at": "2030-01-01T00:00:00Z"},
        {"description": "another"},
        {"run_timeout": "1 hour"},
    ],
    ids=str,
)
def test_schedules_that_differ_in_something_else_are_planned_together(tx, columns):
    insert_schedule(tx, "a", **BASE)
    insert_schedule(tx, "b", **{**BASE, **columns})

    one, other = keys(tx)
    assert one == other


@pytest.mark.parametrize("timing", [{"cron": "@every 5m"}, {"cron": None, "every": "5 minutes"}])
def test_rhythms_are_alike_only_if_they_count_from_the_same_instant(tx, timing):
    for name, anchor in (("a", "2030-01-01"), ("b", "2030-01-01"), ("c", "2030-01-02")):
        insert_schedule(tx, name, definition="work", anchor_at=f"{anchor}T00:00:00Z", **timing)

    one, same, other = keys(tx)
    assert one == same != other


def test_spread_schedules_have_a_key_each(tx):
    for name in ("a", "b"):
        insert_schedule(tx, name, definition="work", cron="H H * * *")

    one, other = keys(tx)
    assert one != other


def test_the_key_does_not_depend_on_the_settings_of_a_session(tx):
    columns = {**BASE, "starts_at": "2030-01-01T00:00:00Z", "catch_up_max_age": "90 minutes"}
    insert_schedule(tx, "a", **columns)
    tx.execute("set local timezone = 'Asia/Kolkata'")
    tx.execute("set local intervalstyle = 'sql_standard'")
    insert_schedule(tx, "b", **columns)

    one, other = keys(tx)
    assert one == other
