"""Functions and operators of others that fit our statements better than those of the system."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from mainspring.db import migrate
from mainspring.db.database import Database
from mainspring.services import tokens
from mainspring.settings import load
from tests.support.databases import empty_database, role

# PostgreSQL prefers the exact types to the system's `text || anynonarray`.
TRAP = """
create table public.loot (who text);
grant insert on public.loot to public;
create function public.take(text, bigint) returns text language plpgsql as $$
begin
    insert into public.loot values (current_user);
    return $1 operator(pg_catalog.||) $2;
end $$;
create operator public.|| (leftarg = text, rightarg = bigint, function = public.take);
"""


@pytest.fixture
def trapped_url(server_url: str) -> Iterator[str]:
    """Of a database in whose schema public a guest may create things, as before PostgreSQL 15."""
    with role(server_url) as guest, empty_database(server_url) as url:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                sql.SQL("grant create on schema public to {}").format(sql.Identifier(guest))
            )
        own = make_conninfo(url, user=guest, password=guest)
        with psycopg.connect(own, autocommit=True) as connection:
            connection.execute(TRAP)
        yield url


async def test_what_others_create_in_public_does_not_run_with_our_rights(trapped_url):
    await migrate.migrate(trapped_url)
    database = Database(load(database_url=trapped_url))
    try:
        new = await tokens.create(database, "ci", "operator")
        caller = await tokens.authenticate(database, new.text)
    finally:
        await database.aclose()

    assert caller.identity == f"token:{new.token.token_id}"
    with psycopg.connect(trapped_url, autocommit=True) as connection:
        assert connection.execute("select who from public.loot").fetchall() == []
