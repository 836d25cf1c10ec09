"""`mainspring.schedule_function` and what keeps definitions and schedules whole, from psql."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql

from tests.support.databases import role

ANSWER = """language sql as $$ select '{"success": true, "message": "done"}'::jsonb $$"""
SEED = """
insert into mainspring.schedules (name, definition, cron)
values ('daily', 'civic.cleanup', '0 1 * * *') on conflict (tenant_id, name) do nothing
"""


@pytest.fixture
def civic(connection: psycopg.Connection) -> psycopg.Connection:
    """A database with functions to schedule."""
    connection.execute(
        f"create schema civic; create function civic.cleanup() returns jsonb {ANSWER};"
        f"create function civic.count() returns integer language sql as 'select 1'".encode()
    )
    return connection


def schedule(connection: psycopg.Connection, function: str, zone: str | None = "UTC") -> None:
    connection.execute(
        "select mainspring.schedule_function('daily', %s, '0 3 * * *', %s)", (function, zone)
    )


def test_one_call_stores_the_definition_and_the_schedule(civic):
    for cron in ("0 3 * * *", "0 4 * * *"):
        civic.execute(
            "select mainspring.schedule_function('daily', 'civic.cleanup', %s,"
            " 'America/New_York', description => 'Cleans up', payload => '{\"days\": 3}')",
            (cron,),
        )

    found = civic.execute(
        "select s.cron, s.zone, s.description, s.payload, d.kind, d.spec ->> 'function', d.version"
        "  from mainspring.schedules as s join mainspring.definitions as d on d.key = s.definition"
    ).fetchall()
    assert found == [
        (cron, "America/New_York", "Cleans up", {"days": 3}, "sql", "civic.cleanup", 1)
    ]


def test_a_name_without_a_schema_is_found_in_the_search_path(civic):
    civic.execute("set search_path = civic")

    schedule(civic, "cleanup")

    assert civic.execute("select key from mainspring.definitions").fetchall() == [
        ("civic.cleanup",)
    ]


@pytest.mark.parametrize(
    ("function", "zone", "said"),
    [
        ("civic.claenup", "UTC", "civic.claenup does not exist; did you mean civic.cleanup?"),
        ("cleanup", "UTC", "write it as schema.name; did you mean civic.cleanup?"),
        ("civic.count", "UTC", "civic.count returns integer; it must return jsonb"),
        ("civic.cleanup", "America/NewYork", "did you mean 'America/New_York'?"),
        ("civic.cleanup", "Berlin", "did you mean 'Europe/Berlin'?"),
        (None, "UTC", "function is missing"),
    ],
)
def test_a_wrong_function_or_zone_is_refused_with_what_is_meant(civic, function, zone, said):
    with pytest.raises(psycopg.Error) as caught, civic.transaction():
        schedule(civic, function, zone)

    assert said in str(caught.value.diag.message_primary)
    assert civic.execute("select from mainspring.definitions").fetchall() == []


def test_a_seed_leaves_what_is_there(civic):
    schedule(civic, "civic.cleanup")

    civic.execute(SEED)
    civic.execute(
        "select mainspring.schedule_function('daily', 'civic.cleanup', '0 2 * * *',"
        " on_conflict => 'nothing')"
    )

    assert civic.execute("select cron from mainspring.schedules").fetchall() == [("0 3 * * *",)]


def test_a_definition_says_what_it_runs(civic):
    with pytest.raises(psycopg.Error, match="kind is missing; to run a SQL function, call"):
        civic.execute("insert into mainspring.definitions (key) values ('work')")


def test_a_definition_that_is_used_is_not_deleted(civic):
    schedule(civic, "civic.cleanup")
    civic.execute(
        "insert into mainspring.triggers (name, event, definition)"
        " values ('on', 'user.*', 'civic.cleanup')"
    )
    delete = "delete from mainspring.definitions where key = 'civic.cleanup'"

    with pytest.raises(psycopg.Error, match="is used by the schedule 'daily' of tenant default"):
        civic.execute(delete)
    civic.execute("delete from mainspring.schedules")
    with pytest.raises(psycopg.Error, match="is used by the trigger 'on' of tenant default"):
        civic.execute(delete)
    civic.execute("delete from mainspring.triggers")
    assert civic.execute(delete.encode()).rowcount == 1


@pytest.fixture
def planner(civic: psycopg.Connection, database_url: str) -> Iterator[psycopg.Connection]:
    """Someone with the grants of the guide for whoever schedules functions."""
    with role(database_url) as name:
        for grant in (
            "usage on schema mainspring, civic",
            "select, insert, update, delete on mainspring.schedules",
            "select, insert, update on mainspring.definitions",
            "execute on function mainspring.schedule_function",
        ):
            civic.execute(sql.SQL(f"grant {grant} to {{}}").format(sql.Identifier(name)))
        with psycopg.connect(f"{database_url}&user={name}", autocommit=True) as connection:
            yield connection


def test_a_role_with_the_grants_schedules_functions_under_its_own_rights(civic, planner):
    schedule(planner, "civic.cleanup")

    (found,) = civic.execute("select spec ->> 'role' from mainspring.definitions").fetchall()
    assert found == (planner.info.user,)


def test_a_role_that_may_schedule_schedules_nothing_that_is_built_in(civic, planner):
    civic.execute(
        "insert into mainspring.definitions (key, kind)"
        " values ('mainspring.housekeeping', 'python')"
    )
    insert = """
        insert into mainspring.schedules (name, definition, every)
        values ('often', 'mainspring.housekeeping', '1 second')
    """

    with pytest.raises(psycopg.Error, match="is built in and for operators only"):
        planner.execute(insert)
    civic.execute(insert)
    with pytest.raises(psycopg.Error, match="is built in and for operators only"):
        planner.execute("update mainspring.schedules set every = '2 seconds'")
