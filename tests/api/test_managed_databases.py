"""An owner as managed services give one: CREATEROLE and a database, but no superuser."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.types.json import Jsonb

from mainspring.db import migrate
from mainspring.db.database import Database
from mainspring.domain.errors.access import AppRoleMissing
from mainspring.services import tokens
from mainspring.settings import load
from tests.support.api import serving
from tests.support.databases import empty_database, role

# What PostgreSQL 16 and newer give to a role with CREATEROLE that creates another.
AS_ITS_CREATOR = "grant mainspring_app to {} with admin true, inherit false, set false"
ENSURE_APP_ROLE = "do $$ begin create role mainspring_app; exception when others then null; end $$"

FUNCTION = """
create function public.cleanup() returns jsonb language sql as 'select ''{"success": true}''::jsonb'
"""
ADD_DEFINITION = "insert into mainspring.definitions (key, kind, spec) values ('x', 'sql', %s)"


@contextmanager
def owned_database(server_url: str) -> Iterator[tuple[str, str]]:
    """The URL of an empty database as its owner, and the owner's name."""
    with (
        role(server_url) as owner,
        empty_database(server_url) as url,
        psycopg.connect(server_url, autocommit=True) as admin,
    ):
        name = sql.Identifier(str(conninfo_to_dict(url)["dbname"]))
        admin.execute(sql.SQL("alter role {} createrole").format(sql.Identifier(owner)))
        change = sql.SQL("alter database {} owner to {}")
        admin.execute(change.format(name, sql.Identifier(owner)))
        admin.execute(ENSURE_APP_ROLE)
        yield make_conninfo(url, user=owner, password=owner), owner


async def serves_two_tenants(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as own:
        own.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    async with serving(url) as api:
        for tenant in ("default", "acme"):
            asked = {"definition": "work", "tags": [f"of-{tenant}"]}
            made = await api.post("/jobs", asked, role="admin", tenant=tenant)
            assert made.status_code == 201, made.text
            found = await api.get("/jobs", role="viewer", tenant=tenant)
            assert [job["tags"] for job in found.json()["items"]] == [[f"of-{tenant}"]]


def app_role(url: str) -> str:
    with psycopg.connect(url) as own:
        row = own.execute("select mainspring.app_role()").fetchone()
        assert row is not None
        return str(row[0])


async def test_it_serves_tenants_without_a_role_of_its_own(server_url: str):
    with owned_database(server_url) as (url, _):
        await migrate.migrate(url)
        await serves_two_tenants(url)
        assert app_role(url) == "pg_database_owner"


async def test_an_installation_goes_on_with_the_role_it_has_used(server_url: str):
    with owned_database(server_url) as (url, owner):
        await migrate.migrate(url)
        with psycopg.connect(server_url, autocommit=True) as admin:
            admin.execute(sql.SQL(AS_ITS_CREATOR).format(sql.Identifier(owner)))
        with psycopg.connect(url, autocommit=True) as own:
            own.execute("select mainspring.ensure_app_role()")
            own.execute("grant usage on schema mainspring to mainspring_app")
        await serves_two_tenants(url)
        assert app_role(url) == "mainspring_app"


async def test_a_function_runs_as_a_role_whose_rights_it_has_and_that_it_may_not_become(server_url):
    """As where createrole_self_grant is `inherit`."""
    with owned_database(server_url) as (url, owner), role(server_url) as other:
        await migrate.migrate(url)
        names = [sql.Identifier(each) for each in (other, owner)]
        with psycopg.connect(server_url, autocommit=True) as admin:
            admin.execute(sql.SQL("grant {} to {} with inherit true, set false").format(*names))
        with psycopg.connect(url, autocommit=True) as own:
            own.execute(FUNCTION)
            spec = Jsonb({"function": "public.cleanup", "role": other})
            # Whoever writes it has to be able to become the role; the owner of the tables not.
            with pytest.raises(psycopg.Error, match=f"{owner} may not become {other}"):
                own.execute(ADD_DEFINITION, (spec,))
        name = conninfo_to_dict(url)["dbname"]
        with psycopg.connect(make_conninfo(server_url, dbname=name), autocommit=True) as admin:
            admin.execute(ADD_DEFINITION, (spec,))


async def test_one_that_owns_the_schema_but_not_the_database_is_told_what_to_do(server_url: str):
    with owned_database(server_url) as (url, owner):
        await migrate.migrate(url)
        name = sql.Identifier(str(conninfo_to_dict(url)["dbname"]))
        with psycopg.connect(server_url, autocommit=True) as admin:
            admin.execute(sql.SQL("alter database {} owner to postgres").format(name))
        database = Database(load(database_url=url))
        try:
            said = f"grant mainspring_app to {owner} with set true"
            with pytest.raises(AppRoleMissing, match=said):
                await tokens.open_to_app(database)
        finally:
            await database.aclose()
