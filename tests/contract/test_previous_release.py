"""The previous release beside the schema and functions of today, statement by statement.

That its programs really run is tested in runtime/test_rolling_upgrade.py. This covers what no
short run comes to: every statement it may ever send.
"""

import asyncio
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mainspring.db import dump, migrate
from mainspring.db.calls import with_numbers
from mainspring.db.statements import Statement, parse
from tests.support.commands import clean_environment
from tests.support.databases import empty_database, role
from tests.support.releases import BASELINE, PREVIOUS, UNRELEASED, export

# What callers from SQL are promised.
PUBLIC = (Path(__file__).parents[2] / "docs" / "guides" / "sql.md").read_text()
# Functions with their inputs, how many of these must be given, and what they return.
FUNCTIONS = """
select proname, proargnames[1:pronargs], proargtypes::regtype[]::text[],
       pronargs - pronargdefaults, prorettype::regtype::text
  from pg_proc where pronamespace = 'mainspring'::regnamespace
"""
VIEW_COLUMNS = """
select relname, attname, format_type(atttypid, atttypmod)
  from pg_attribute join pg_class on pg_class.oid = attrelid
 where relnamespace = 'mainspring'::regnamespace and relkind = 'v' and attnum > 0
"""

# PostgreSQL looks into these when they are created, or used for the first time in a session.
DEFINITIONS = """
select pg_get_functiondef(proc.oid)
  from pg_proc as proc join pg_language as language on language.oid = prolang
 where pronamespace = 'mainspring'::regnamespace and lanname = 'sql'
"""


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export(PREVIOUS, tmp_path_factory.mktemp("previous"))


@pytest.fixture
def url(server_url: str) -> Iterator[str]:
    with empty_database(server_url) as url:
        yield url


def migrate_with(source: Path, url: str) -> None:
    environment = clean_environment(PYTHONPATH=str(source), MAINSPRING_DATABASE_URL=url)
    command = [sys.executable, "-m", "mainspring", "migrate"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def statements(source: Path) -> list[Statement]:
    files = sorted((source / "mainspring" / "sql" / "queries").glob("*.sql"))
    return [each for file in files for each in parse(file.read_text(), file.name).values()]


def refused(url: str, known: list[Statement]) -> dict[str, str]:
    """The statements that the database cannot prepare, each with the reason."""
    problems = {}
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in known:
            text, _ = with_numbers(statement.sql)
            result = connection.pgconn.prepare(b"", text.encode())
            if result.status != psycopg.pq.ExecStatus.COMMAND_OK:
                problems[statement.name] = result.error_message.decode()
    return problems


def test_the_database_takes_every_statement_of_the_previous_release(url, previous):
    migrate_with(previous, url)
    known = statements(previous)
    before = refused(url, known)

    asyncio.run(migrate.migrate(url))

    # What cannot be prepared at all, such as COPY, is refused before as well.
    assert refused(url, known) == before
    assert len(known) > 100 > len(before)


async def unfit_functions(connection: psycopg.AsyncConnection[Any]) -> dict[str, str]:
    """The SQL functions that could not be created as they are, each with the reason."""
    problems = {}
    cursor = await connection.execute(DEFINITIONS)
    for (definition,) in await cursor.fetchall():
        try:
            async with connection.transaction():
                await connection.execute(definition)
        except psycopg.Error as error:
            problems[definition.partition("(")[0]] = str(error)
    return problems


async def test_the_functions_of_the_previous_release_fit_between_two_migrations(url, previous):
    await asyncio.to_thread(migrate_with, previous, url)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        todo = (await migrate.pending(connection)).migrations[:-1]
        for migration in todo:
            await migrate.apply_alone(connection, migration)

            assert (migration.name, await unfit_functions(connection)) == (migration.name, {})


async def test_a_function_that_no_longer_fits_its_table_is_noticed(url):
    await migrate.migrate(url)
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        assert await unfit_functions(connection) == {}
        await connection.execute("alter table mainspring.jobs_history add column new integer")

        assert any("history_of" in name for name in await unfit_functions(connection))


def test_a_statement_that_is_no_longer_taken_is_noticed(url):
    asyncio.run(migrate.migrate(url))
    known = statements(dump.FILE.parents[2])
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("drop function mainspring.expire_approvals")

    assert set(refused(url, known)) == {"expire_approvals"}


def test_callers_from_sql_find_every_function_and_column_as_before(url, previous):
    migrate_with(previous, url)
    with psycopg.connect(url, autocommit=True) as connection:
        functions, columns = public(connection, FUNCTIONS), public(connection, VIEW_COLUMNS)
        asyncio.run(migrate.migrate(url))
        now = public(connection, FUNCTIONS)

        assert set(columns) <= set(public(connection, VIEW_COLUMNS))
    assert [each for each in functions if not any(takes(today, each) for today in now)] == []
    assert len(functions) > 5
    assert len(columns) > 50


def public(connection: psycopg.Connection, query: str) -> list[tuple[Any, ...]]:
    named = set(re.findall(r"mainspring\.(\w+)", PUBLIC))
    return [row for row in connection.execute(query.encode()) if row[0] in named]


def takes(today: tuple[Any, ...], before: tuple[Any, ...]) -> bool:
    """Whether every call that the function took before is taken by today's."""
    (name, names, types, needed, answer), (was, old_names, old_types, was_needed, old_answer) = (
        today,
        before,
    )
    count = len(old_types)
    return (
        (name, answer) == (was, old_answer)
        and (types[:count], (names or [])[:count]) == (old_types, old_names or [])
        and needed <= was_needed
    )


@pytest.mark.parametrize(
    ("ci", "outcome"), [("", pytest.skip.Exception), ("true", pytest.fail.Exception)]
)
def test_without_its_commit_these_tests_are_skipped_but_not_in_ci(
    ci, outcome, tmp_path, monkeypatch
):
    monkeypatch.setenv("CI", ci)

    with pytest.raises(outcome, match="needs commit 000000000000 of a full git checkout"):
        export("0" * 40, tmp_path)


def test_every_migration_works_with_the_previous_release(previous):
    folder = previous / "mainspring" / "sql" / "migrations"
    newest = max(int(file.name[:4]) for file in folder.glob("*.sql"))

    for migration in migrate.migrations():
        assert migration.works_with <= newest, f"{migration} refuses the previous release"


def test_a_released_migration_is_never_edited(previous):
    folder = previous / "mainspring" / "sql" / "migrations"
    ours = {str(migration): migration.checksum for migration in migrate.migrations()}

    for file in folder.glob("*.sql"):
        old = migrate.Migration(int(file.name[:4]), file.name[5:-4], file.read_text())
        assert ours[str(old)] == old.checksum, f"{old} was changed; add a migration instead"


def test_the_version_of_functions_never_falls(previous):
    text = (previous / "mainspring" / "sql" / "functions.version").read_text()
    (version,) = [int(line.split()[0]) for line in text.splitlines() if line[:1].isdigit()]

    assert migrate.recorded_functions()[0] >= version


async def test_a_database_of_the_last_unreleased_version_is_adopted(url, database_url, tmp_path):
    migrate_with(export(UNRELEASED, tmp_path), url)
    with role(url) as caller, psycopg.connect(url, autocommit=True) as connection:
        connection.execute("insert into mainspring.jobs (definition) values ('work')")
        connection.execute(f"grant execute on function mainspring.enqueue to {caller}".encode())

        changes = await migrate.upgrade(url)

        right = "select has_function_privilege(%s, 'mainspring.enqueue'::regproc, 'execute')"
        assert connection.execute(right, (caller,)).fetchone() == (True,)
        assert connection.execute("select count(*) from mainspring.jobs").fetchone() == (1,)
        assert changes.has_functions
    assert not await migrate.upgrade(url)
    assert made_by(url) == made_by(database_url)


def made_by(url: str) -> list[str]:
    """The schema, but for names of NOT NULL constraints, which tell how a column was added."""
    lines = dump.dump(url).splitlines()
    return [line for line in lines if not line.startswith("    definition_version integer")]


FORMER = """
insert into mainspring.people (name, role, tenant_id, created_by)
values ('ann', 'admin', 'default', 'root');
insert into mainspring.tokens (
    kind, name, prefix, digest, role, tenant_id, expires_at, person, created_by)
values ('session', 'ann', 'msk_a', sha256('a'), 'admin', 'default', 'infinity', 'ann', 'ann'),
       ('token', 'ci', 'msk_b', sha256('b'), 'admin', 'default', null, null, 'root');
insert into mainspring.definitions (key, approvals_needed) values ('grave', 9);
select set_config('mainspring.actor', actor, false), mainspring.approve(job_id)
  from (select mainspring.enqueue('grave') as job_id) as asked,
       unnest(array['ann', 'ci', 'bob']) as actor;
"""
VOTERS = "select name, actor from mainspring.votes order by voted_at, name"
BEARER = "select actor, actor_id, role from mainspring.bearer(sha256(%s))"


def test_people_tokens_and_votes_of_the_baseline_keep_who_they_are(url, tmp_path):
    migrate_with(export(BASELINE, tmp_path), url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(FORMER.encode())
        asyncio.run(migrate.migrate(url))

        voters = connection.execute(VOTERS).fetchall()
        ann = connection.execute(BEARER, ("a",)).fetchone()
        token = connection.execute(BEARER, ("b",)).fetchone()

    assert voters == [("ann", "person:1"), ("bob", "name:bob"), ("ci", "token:2")]
    assert (ann, token) == (("ann", "person:1", "admin"), ("ci", "token:2", "admin"))
