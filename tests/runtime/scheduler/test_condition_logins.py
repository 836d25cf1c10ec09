"""Conditions under a login of their own, which they cannot leave."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from mainspring import Mainspring
from mainspring.settings import load
from tests.support import schedules
from tests.support.schedules import insert_due, scheduling
from tests.support.waiting import await_until

LOGIN = "mainspring_test_limited"
ESCAPE = "select set_config('role', 'none', true) is not null and exists (select from secrets)"


@pytest.fixture
def limited_app(
    app: Mainspring, connection: psycopg.Connection, database_url: str
) -> Iterator[Mainspring]:
    """Conditions log in as someone who may read nothing of ours."""
    connection.execute(f"drop role if exists {LOGIN}")
    connection.execute(f"create role {LOGIN} login")
    connection.execute("create table secrets as select 1 as secret")
    login = make_conninfo(database_url, user=LOGIN)
    app.use(load(database_url=database_url, condition_database_url=login))
    yield app
    connection.execute(f"drop role {LOGIN}")


async def test_a_condition_runs_as_the_login_and_not_as_its_role(limited_app, connection):
    insert_due(connection, condition_sql=f"select current_user = '{LOGIN}'")
    async with scheduling(limited_app):
        await await_until(lambda: schedules.outcomes(connection) == ["enqueued"])


async def test_a_condition_cannot_leave_the_login(limited_app, connection):
    insert_due(connection, condition_sql=ESCAPE)
    async with scheduling(limited_app):
        await await_until(lambda: schedules.outcomes(connection) == ["failed"])
    assert "permission denied for table secrets" in schedules.slots(connection)[0]["reason"]
