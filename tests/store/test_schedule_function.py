"""`mainspring.schedule_function` and what keeps definitions and schedules whole, from psql."""

from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from psycopg import sql

from mainspring.db import migrate
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
        (
            "cleanup",
            "UTC",
            "there is no function cleanup in your search path; did you mean civic.cleanup?",
        ),
        ("clear", "UTC", "there is no function clear in your search path"),
        (
            "civic.cleanup()",
            "UTC",
            "function: write the name without parentheses, as civic.cleanup",
        ),
        ("civic.count", "UTC", "civic.count returns integer; it must return jsonb"),
        ("civic.cleanup", "America/NewYork", "did you mean 'America/New_York'?"),
        ("civic.cleanup", "Berlin", "did you mean 'Europe/Berlin'?"),
        ("civic.cleanup", "cst", "did you mean 'America/Chicago' or 'Asia/Shanghai'?"),
        (None, "UTC", "function is missing"),
        (
            "mainspring.enqueue",
            "UTC",
            "function: mainspring.enqueue belongs to Mainspring; give a function of your own",
        ),
    ],
)
def test_a_wrong_function_or_zone_is_refused_with_what_is_meant(civic, function, zone, said):
    with pytest.raises(psycopg.Error) as caught, civic.transaction():
        schedule(civic, function, zone)

    assert said in str(caught.value.diag.message_primary)
    assert civic.execute("select from mainspring.definitions").fetchall() == []


def test_a_function_that_several_schemas_have_is_suggested_from_each(civic):
    civic.execute("create schema metadata")
    civic.execute("create function metadata.cleanup() returns jsonb return '{}'::jsonb")

    with pytest.raises(psycopg.Error) as caught:
        schedule(civic, "public.cleanup")

    said = "public.cleanup does not exist; did you mean civic.cleanup or metadata.cleanup?"
    assert said in str(caught.value.diag.message_primary)


def test_an_unknown_tenant_is_named(civic):
    call = "select mainspring.schedule_function('daily', 'civic.cleanup', '@daily', tenant => %s)"
    insert = "insert into mainspring.triggers (name, event, definition, tenant_id)"

    with pytest.raises(psycopg.Error, match=r"^there is no tenant 'acme'"):
        civic.execute(call, ("acme",))
    with pytest.raises(psycopg.Error, match=r"^there is no tenant 'acme'"):
        civic.execute(f"{insert} values ('on', 'user.*', 'civic.cleanup', 'acme')".encode())


def test_a_cron_expression_that_is_none_is_shown(civic):
    with pytest.raises(psycopg.Error, match="minute hour day month weekday\\), not 'UTC'"):
        civic.execute("select mainspring.schedule_function('daily', 'civic.cleanup', 'UTC')")


LIMITED = """
select s.max_attempts, d.timeout from mainspring.schedules as s
  join mainspring.definitions as d on d.key = s.definition
"""


def test_a_schedule_says_how_often_and_how_long_its_function_runs(civic):
    civic.execute(
        "select mainspring.schedule_function('daily', 'civic.cleanup', '@daily',"
        " max_attempts => 1, timeout => '5 minutes')"
    )
    assert civic.execute(LIMITED).fetchall() == [(1, timedelta(minutes=5))]

    schedule(civic, "civic.cleanup")
    assert civic.execute(LIMITED).fetchall() == [(1, timedelta(minutes=5))]


def test_without_them_it_has_those_of_its_definition(civic):
    schedule(civic, "civic.cleanup")

    assert civic.execute(LIMITED).fetchall() == [(None, timedelta(hours=1))]


@pytest.mark.parametrize(
    ("definition", "said"),
    [
        ("civic.claenup", "unknown definition 'civic.claenup'; did you mean 'civic.cleanup'?"),
        ("report", "unknown definition 'report'"),
        ("civic.cleanup", None),
    ],
)
def test_a_schedule_of_an_unknown_definition_is_stored_with_a_warning(civic, definition, said):
    schedule(civic, "civic.cleanup")
    warnings: list[str | None] = []
    civic.add_notice_handler(lambda notice: warnings.append(notice.message_primary))

    civic.execute(
        "insert into mainspring.schedules (name, definition, every) values ('x', %s, '1 day')",
        (definition,),
    )
    civic.execute("update mainspring.schedules set payload = '{\"x\": 1}' where name = 'x'")

    assert warnings == ([said] if said else [])


def test_a_slot_of_an_unknown_definition_says_which_may_be_meant(civic):
    schedule(civic, "civic.cleanup")
    civic.execute("update mainspring.schedules set definition = 'civic.claenup'")

    with pytest.raises(psycopg.Error, match=r"did you mean 'civic\.cleanup'"):
        civic.execute("select mainspring.trigger_scheduled_job('daily')")


def test_a_mistyped_schedule_is_refused_with_the_one_that_is_meant(civic):
    schedule(civic, "civic.cleanup")
    civic.execute("update mainspring.schedules set name = 'daily_cleanup'")

    with pytest.raises(psycopg.Error, match="'dayly_cleanup'; did you mean 'daily_cleanup'"):
        civic.execute("select mainspring.trigger_scheduled_job('dayly_cleanup')")


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


@pytest.mark.parametrize(
    "change",
    [
        "update mainspring.schedules set enabled = false",
        "update mainspring.schedules set definition = 'civic.cleanup'",
        "update mainspring.schedules set run_at = now()",
        "delete from mainspring.schedules",
        "update mainspring.definitions set is_active = false where key like 'mainspring.%'",
        "insert into mainspring.definitions (key, kind) values ('mainspring.mine', 'python')",
    ],
)
def test_only_the_owner_changes_what_is_built_in(civic, planner, change):
    civic.execute(
        "insert into mainspring.definitions (key, kind) values ('mainspring.prune', 'python');"
        "insert into mainspring.schedules (name, definition, every)"
        " values ('prune', 'mainspring.prune', '1 day')"
    )

    with pytest.raises(psycopg.Error, match="is built in and for operators only"):
        planner.execute(change)
    civic.execute(change.encode())


OTHERS = [
    "update mainspring.definitions set is_active = false",
    """update mainspring.definitions set spec = '{"function": "civic.cleanup"}'""",
    "select mainspring.schedule_function('mine', 'civic.cleanup', '@daily', role => current_user)",
    "select mainspring.schedule_function('mine', 'civic.cleanup', '@daily', timeout => '1 day')",
]


@pytest.mark.parametrize("change", OTHERS)
def test_a_definition_is_changed_by_those_who_have_the_rights_of_its_role(civic, planner, change):
    with role(civic.info.dsn) as other:
        names = sql.Identifier(other), sql.Identifier(planner.info.user)
        civic.execute(sql.SQL("grant usage on schema civic to {}").format(names[0]))
        civic.execute(
            "select mainspring.schedule_function('daily', 'civic.cleanup', '@daily', role => %s)",
            (other,),
        )

        with pytest.raises(psycopg.Error, match=f"role is {other}, whose rights"):
            planner.execute(change)
        civic.execute(sql.SQL("grant {} to {}").format(*names))
        planner.execute(change.encode())


def test_a_definition_without_a_role_is_changed_by_the_owner_alone(civic, planner):
    civic.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    change = "update mainspring.definitions set queue = 'mine'"

    with pytest.raises(psycopg.Error, match="kind is python; only the owner of Mainspring can"):
        planner.execute(change)
    civic.execute(change.encode())


EARLIER = """
alter function mainspring.schedule_function rename to later;
create function mainspring.schedule_function(
    name text, function text, cron text, zone text default null, payload jsonb default '{}',
    description text default null, role text default null, tenant text default 'default',
    enabled boolean default null, on_conflict text default 'update'
) returns bigint language sql return 1;
drop function mainspring.later;
update mainspring.installed_functions set version = 1;
"""


async def test_an_upgrade_leaves_one_of_it_with_its_grants(civic, database_url):
    civic.execute(EARLIER)
    with role(database_url) as name:
        grant = "grant execute on function mainspring.schedule_function to {}"
        civic.execute(sql.SQL(grant).format(sql.Identifier(name)))

        await migrate.upgrade(database_url)

        rights = "select has_function_privilege(%s, oid, 'execute') from pg_proc where proname = %s"
        assert civic.execute(rights, (name, "schedule_function")).fetchall() == [(True,)]
    schedule(civic, "civic.cleanup")
