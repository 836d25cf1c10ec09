"""The application's login: an ordinary owner, also of a data directory that the superuser owned."""

import asyncio
from pathlib import Path

import psycopg
import pytest

from mainspring import JobState, Mainspring
from mainspring.db import embedded, migrate
from mainspring.settings import load
from mainspring.testing import drain

MADE_BEFORE = """
create schema civic;
create type civic.mood as enum ('good');
create domain civic.word as text;
create table civic.log (id bigint generated always as identity, line civic.word);
create sequence civic.numbers;
create view civic.lines as select line from civic.log;
create materialized view civic.kept as select line from civic.log;
create function civic.notes(payload jsonb) returns jsonb language plpgsql as $$
begin
    insert into civic.log (line) values (session_user);
    return '{"success": true}';
end $$;
create role civic_jobs login;
grant usage on schema civic to civic_jobs;
grant insert on civic.log to civic_jobs;
"""
LEFT = """
select oid::regclass::text from pg_class
 where relowner = 'postgres'::regrole and relnamespace::regnamespace::text !~ '^pg_|^information'
union all select oid::regprocedure::text from pg_proc
 where proowner = 'postgres'::regrole and pronamespace::regnamespace::text !~ '^pg_|^information'
union all select oid::regtype::text from pg_type
 where typowner = 'postgres'::regrole and typnamespace::regnamespace::text !~ '^pg_|^information'
union all select nspname from pg_namespace
 where nspowner = 'postgres'::regrole and nspname !~ '^pg_|^information'
"""


def test_the_application_is_no_superuser(data_dir: Path):
    with (
        embedded.running(data_dir) as server,
        psycopg.connect(server.url, autocommit=True) as connection,
    ):
        assert connection.info.parameter_status("is_superuser") == "off"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("copy (select 1) to program 'true'")
        with connection.transaction(force_rollback=True):
            connection.execute("create table own (x integer); create schema civic")
            connection.execute("create role civic_jobs; set role civic_jobs")


def test_a_data_directory_of_the_superuser_is_handed_over(own_data_dir: Path):
    with embedded.running(own_data_dir) as server:
        as_before(server.superuser_url)
    with (
        embedded.running(own_data_dir) as server,
        psycopg.connect(server.url, autocommit=True) as connection,
    ):
        assert connection.execute(LEFT).fetchall() == []
        assert connection.info.user == "mainspring"
        roles = "select spec ->> 'role' from mainspring.definitions where kind = 'sql' order by 1"
        assert connection.execute(roles).fetchall() == [("civic_jobs",), ("mainspring",)]
        assert runs(server.url, own_data_dir) == [JobState.SUCCEEDED] * 2
        lines = connection.execute("select line from civic.log order by 1").fetchall()
        assert lines == [("civic_jobs",), ("mainspring",)]


UNQUALIFIED = """
create table notes (x integer);
create function run_daily_cleanup() returns jsonb language sql
    as $$ select '{"success": true}'::jsonb $$;
select mainspring.schedule_function('daily_cleanup', 'run_daily_cleanup', '0 3 * * *');
"""


@pytest.mark.parametrize("is_old", [False, True])
def test_what_people_create_without_a_schema_lands_in_public(own_data_dir: Path, is_old: bool):
    if is_old:
        with (
            embedded.running(own_data_dir) as server,
            psycopg.connect(server.superuser_url, autocommit=True) as connection,
        ):
            connection.execute("alter role mainspring reset search_path")
    with embedded.running(own_data_dir) as server:
        asyncio.run(migrate.migrate(server.url))
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(UNQUALIFIED)

            assert connection.execute("select 'notes'::regclass::text").fetchall() == [("notes",)]
            assert connection.execute("select to_regclass('public.notes')").fetchone() != (None,)
            keys = connection.execute("select key from mainspring.definitions").fetchall()
            assert ("public.run_daily_cleanup",) in keys


def test_a_search_path_that_somebody_chose_stays(own_data_dir: Path):
    with (
        embedded.running(own_data_dir) as server,
        psycopg.connect(server.url, autocommit=True) as connection,
    ):
        connection.execute("alter role mainspring set search_path = civic")
    with (
        embedded.running(own_data_dir) as server,
        psycopg.connect(server.url, autocommit=True) as connection,
    ):
        assert connection.execute("show search_path").fetchone() == ("civic",)


def as_before(url: str) -> None:
    """What an earlier release left: all of it belongs to the superuser."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("alter database mainspring owner to postgres")
        connection.execute("drop role mainspring")
        asyncio.run(migrate.migrate(url))
        connection.execute(MADE_BEFORE)
    with Mainspring(url) as app:
        app.definitions.create("own", "sql", function="civic.notes")
        app.definitions.create("theirs", "sql", function="civic.notes", role="civic_jobs")
        app.schedules.create("nightly", "own", cron="@daily", condition_sql="select true")


def runs(url: str, data_dir: Path) -> list[JobState]:
    app = Mainspring()
    app.use(load(data_dir=data_dir))
    try:
        handles = [app.enqueue("own", {}), app.enqueue("theirs", {})]
        drain(app)
        return [handle.job().state for handle in handles]
    finally:
        app.close()
