"""A database as an administrator gives one to an application: its owner, and no other right."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.support.commands import clean_environment, mainspring, mainspring_each, run_python
from tests.support.databases import empty_database, role
from tests.support.processes import WorkerProcess, says
from tests.support.warm import ROOT

ROLES = "select string_agg(rolname, ' ' order by rolname) from pg_roles where rolname !~ 'test'"
ENSURE_APP_ROLE = "do $$ begin create role mainspring_app; exception when others then null; end $$"
RUNS = """
import asyncio
from mainspring import Mainspring
from mainspring.testing import drain

app = Mainspring()

@app.job
def hello(name: str) -> str:
    return name

hello.enqueue(name="Ada")
print(drain(app))
"""


@pytest.fixture
def admin(server_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(server_url, autocommit=True) as connection:
        yield connection


@pytest.fixture
def owner_url(server_url: str, admin: psycopg.Connection) -> Iterator[str]:
    """Of an empty database, for its owner, who may neither create roles nor become any."""
    with role(server_url) as owner, empty_database(server_url) as url:
        name = sql.Identifier(str(conninfo_to_dict(url)["dbname"]))
        owned = sql.SQL("alter database {} owner to {}").format(name, sql.Identifier(owner))
        admin.execute(owned)
        yield make_conninfo(url, user=owner, password=owner)


@pytest.fixture
def other_url(server_url: str) -> Iterator[str]:
    """Of an empty database, for someone who may connect and nothing else."""
    with role(server_url) as login, empty_database(server_url) as url:
        yield make_conninfo(url, user=login, password=login)


def ask(log: str, said: str, path: str) -> httpx.Response:
    """A request to the server of the log with the token that was said."""
    server, token = re.search(r"http://[\d.:]+", log), re.search(r"msk_\S+", said)
    assert server is not None, log
    assert token is not None, said
    headers = {"Authorization": f"Bearer {token[0]}"}
    return httpx.get(f"{server[0]}/api/v1{path}", headers=headers)


def user_of(url: str) -> str:
    return str(conninfo_to_dict(url)["user"])


def test_an_ordinary_owner_needs_no_administrator_and_makes_no_role(owner_url, admin, tmp_path):
    admin.execute(ENSURE_APP_ROLE)
    before = admin.execute(ROLES).fetchone()

    checked, migrated, fine, jobs, tenant, member, own = mainspring_each(
        [
            ["config", "check", "--connect"],
            ["migrate"],
            ["config", "check", "--connect"],
            ["jobs", "list"],
            ["tenants", "create", "acme"],
            ["tokens", "create", "it", "--role", "member", "--tenant", "acme"],
            ["schedules", "list"],
        ],
        MAINSPRING_DATABASE_URL=owner_url,
    )
    assert "has no Mainspring schema" in checked.stdout
    for done in (migrated, fine, jobs, tenant, member, own):
        assert done.returncode == 0, done.stderr
    assert admin.execute(ROLES).fetchone() == before

    environment = clean_environment(MAINSPRING_DATABASE_URL=owner_url)
    for arguments, said in (
        (["server", "--port", "0"], "one-time link"),
        (["scheduler"], "scheduler_started"),
        (["worker"], "worker_started"),
    ):
        process = WorkerProcess(arguments, environment, tmp_path / arguments[0], ROOT)
        try:
            says(process, said)
            if arguments[0] == "server":
                listed = ask(process.log, member.stdout, "/jobs")
                assert (listed.status_code, listed.json()["items"]) == (200, [])
        finally:
            process.end()


def test_one_that_is_not_the_owner_is_told_everything_an_administrator_has_to_run(
    other_url, server_url, admin
):
    admin.execute(ENSURE_APP_ROLE)
    login, database = user_of(other_url), str(conninfo_to_dict(other_url)["dbname"])

    told = mainspring("migrate", MAINSPRING_DATABASE_URL=other_url)
    found = mainspring("config", "check", "--connect", MAINSPRING_DATABASE_URL=other_url)

    assert told.returncode == 2
    statements = [line for line in told.stderr.splitlines() if line.endswith(";")]
    assert statements[:2] == [
        f"create schema mainspring authorization {login};",
        f"create schema mainspring_calls authorization {login};",
    ]
    assert statements[2].startswith(f"grant mainspring_app to {login}")
    assert "\n".join(statements) in found.stdout
    with psycopg.connect(make_conninfo(server_url, dbname=database), autocommit=True) as there:
        assert there.execute("select to_regnamespace('mainspring')").fetchone() == (None,)
        for statement in statements:
            there.execute(statement.encode())

    after = mainspring_each(
        [["migrate"], ["config", "check", "--connect"], ["jobs", "list"]],
        MAINSPRING_DATABASE_URL=other_url,
    )
    assert [done.returncode for done in after] == [0, 0, 0], after


def test_check_finds_a_login_that_cannot_serve_requests(other_url, server_url):
    database = str(conninfo_to_dict(other_url)["dbname"])
    with psycopg.connect(make_conninfo(server_url, dbname=database), autocommit=True) as there:
        for name in ("mainspring", "mainspring_calls"):
            statement = sql.SQL("create schema {} authorization {}")
            there.execute(
                statement.format(sql.Identifier(name), sql.Identifier(user_of(other_url)))
            )
        there.execute(ENSURE_APP_ROLE)
    found = mainspring("config", "check", "--connect", MAINSPRING_DATABASE_URL=other_url)

    assert found.returncode == 2
    assert f"grant mainspring_app to {user_of(other_url)}" in found.stdout


def test_a_login_that_is_a_member_of_the_owner_works_like_the_owner(owner_url, server_url, admin):
    assert mainspring("migrate", MAINSPRING_DATABASE_URL=owner_url).returncode == 0
    with role(server_url) as login:
        owner = sql.Identifier(user_of(owner_url))
        admin.execute(sql.SQL("grant {} to {}").format(owner, sql.Identifier(login)))
        url = make_conninfo(owner_url, user=login, password=login)

        done = mainspring_each(
            [["jobs", "list"], ["tokens", "create", "one", "--role", "viewer"]],
            MAINSPRING_DATABASE_URL=url,
        )

    assert [each.returncode for each in done] == [0, 0], done


def test_a_program_without_rights_says_which_login_lacks_them(
    owner_url, server_url, tmp_path: Path
):
    assert mainspring("migrate", MAINSPRING_DATABASE_URL=owner_url).returncode == 0
    program = tmp_path / "program.py"
    program.write_text(RUNS)
    with role(server_url) as login:
        url = make_conninfo(owner_url, user=login, password=login)
        refused = run_python([str(program)], {"MAINSPRING_DATABASE_URL": url})
    allowed = run_python([str(program)], {"MAINSPRING_DATABASE_URL": owner_url})

    assert refused.returncode == 1
    last = refused.stderr.strip().splitlines()[-1]
    assert last.startswith("mainspring.domain.errors.database.InsufficientRights: ")
    assert "connect as the owner of the schema mainspring" in last
    assert "succeeded=1" in allowed.stdout, allowed.stderr
