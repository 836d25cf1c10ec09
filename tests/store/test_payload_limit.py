"""The largest payload: whoever owns the database sets it, and no session for itself."""

from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from tests.support.databases import role

LIMIT = 1_048_576
RAISED = 2 * LIMIT


@pytest.fixture
def caller(database_url: str, connection: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """A role of an application, which may enqueue and nothing else."""
    connection.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")
    with role(database_url) as name:
        for grant in (
            "grant usage on schema mainspring to {}",
            (
                "grant execute on function mainspring.enqueue, mainspring.enqueue_many,"
                " mainspring.emit, mainspring.enqueue_flow to {}"
            ),
        ):
            connection.execute(sql.SQL(grant).format(sql.Identifier(name)))
        url = make_conninfo(database_url, user=name, password=name)
        with psycopg.connect(url, autocommit=True) as opened:
            yield opened


def payload_of(size: int) -> Jsonb:
    return Jsonb({"x": "y" * (size - len('{"x": ""}'))})


CALLS = [
    "mainspring.enqueue('work', %s)",
    "mainspring.enqueue_many('work', array[%s::jsonb])",
    "mainspring.emit('a', %s)",
    (
        "mainspring.enqueue_flow('f', jsonb_build_array(jsonb_build_object("
        "'definition', 'work', 'payload', %s::jsonb)))"
    ),
]


@pytest.mark.parametrize("call", CALLS)
def test_a_session_cannot_raise_the_limit_for_itself(caller: psycopg.Connection, call: str):
    caller.execute(f"set mainspring.max_payload_bytes = {RAISED}".encode())

    with pytest.raises(psycopg.Error) as refused:
        caller.execute(f"select {call}".encode(), [payload_of(LIMIT + 1)])

    assert refused.value.sqlstate in ("MS002", "MS060")
    assert str(LIMIT) in f"{refused.value} {refused.value.diag.message_detail}"


def test_the_owner_raises_the_limit_for_the_database(
    caller: psycopg.Connection, connection: psycopg.Connection
):
    name = sql.Identifier(connection.info.dbname)
    connection.execute(
        sql.SQL("alter database {} set mainspring.max_payload_bytes = 2097152").format(name)
    )

    assert caller.execute("select mainspring.enqueue('work', %s)", [payload_of(RAISED)]).fetchone()
    with pytest.raises(psycopg.Error) as refused:
        caller.execute("select mainspring.enqueue('work', %s)", [payload_of(RAISED + 1)])

    assert refused.value.sqlstate == "MS002"


def test_no_setting_is_above_the_largest(connection: psycopg.Connection):
    connection.execute("set mainspring.max_payload_bytes = 1000000000")

    assert connection.execute("select mainspring.max_payload_bytes()").fetchone() == (67_108_864,)
