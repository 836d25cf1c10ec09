"""Members of a role that may not become it, as PostgreSQL 16 and newer have them."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from tests.support.databases import role

SCHEMA = """
create schema civic;
create function civic.cleanup() returns jsonb language sql as 'select ''{"success": true}''::jsonb';
"""
MAY_WRITE = """
grant usage on schema mainspring, civic to {0};
grant insert, update, select on mainspring.definitions, mainspring.schedules to {0};
grant execute on function mainspring.approve(bigint, text, text) to {0};
"""
# What is left of a membership by CREATEROLE, without the right to grant it.
BARE = "grant {} to {} with inherit false, set false"
ADD_DEFINITION = "insert into mainspring.definitions (key, kind, spec) values ('x', 'sql', %s)"
ADD_SCHEDULE = """
insert into mainspring.schedules (name, definition, cron, condition_sql, condition_role)
values ('x', 'work', '@daily', 'select true', %s)
"""


@pytest.fixture
def boss(database_url: str, connection: psycopg.Connection) -> Iterator[str]:
    connection.execute(SCHEMA)
    connection.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    with role(database_url) as name:
        yield name


@pytest.fixture
def member(database_url: str, connection: psycopg.Connection, boss: str) -> Iterator[str]:
    """A bare member of the boss and of the owner of Mainspring."""
    with role(database_url) as name:
        own = sql.Identifier(name)
        connection.execute(sql.SQL(MAY_WRITE).format(own))
        for group in (boss, connection.info.user):
            connection.execute(sql.SQL(BARE).format(sql.Identifier(group), own))
        yield name


@pytest.fixture
def low(database_url: str, member: str) -> Iterator[psycopg.Connection]:
    url = make_conninfo(database_url, user=member, password=member)
    with psycopg.connect(url, autocommit=True) as connection:
        yield connection


def test_a_bare_member_has_no_function_run_under_the_role(low, boss):
    with pytest.raises(psycopg.Error, match=f"may not become {boss}; ask an administrator to run"):
        low.execute(ADD_DEFINITION, (Jsonb({"function": "civic.cleanup", "role": boss}),))


def test_a_bare_member_has_no_condition_run_under_the_role(low, boss):
    with pytest.raises(psycopg.Error, match=f"may not become {boss}; ask an administrator to run"):
        low.execute(ADD_SCHEDULE, (boss,))


def test_a_bare_member_of_the_owner_trusts_nothing(low, member):
    spec = {"function": "civic.cleanup", "role": member, "trusted": True}
    with pytest.raises(psycopg.Error, match="trusted: can only be set by the owner of Mainspring"):
        low.execute(ADD_DEFINITION, (Jsonb(spec),))


def test_a_bare_member_of_the_owner_is_not_believed_who_acts(low, member, connection):
    low.execute("select set_config('mainspring.actor', 'ann', false)")
    low.execute(ADD_SCHEDULE, (member,))

    found = connection.execute("select actor_id from mainspring.audit where subject = 'x'")
    assert found.fetchall() == [(f"sql:{member}",)]


def test_a_bare_member_does_not_approve_for_the_role(low, boss, connection):
    connection.execute(
        "update mainspring.definitions set approvals_needed = 1, approvers = %s", ([boss],)
    )
    ((job_id,),) = connection.execute("select mainspring.enqueue('work')").fetchall()

    with pytest.raises(psycopg.Error, match="approve"):
        low.execute("select mainspring.approve(%s::bigint)", (job_id,))
    state = connection.execute("select state::text from mainspring.jobs")
    assert state.fetchall() == [("awaiting_approval",)]
