"""Connections: what is said when there is none, and what is not."""

import re

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from mainspring.db import connect
from mainspring.domain.errors.database import DatabaseTooOld, DatabaseUnreachable

REFUSED = """\
connection failed: connection to server at "127.0.0.1", port 1 failed: Connection refused
\tIs the server running on that host and accepting TCP/IP connections?
"""


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ada:secret@db/app", "postgresql://ada:***@db/app"),
        ("postgresql://ada@db/app", "postgresql://ada@db/app"),
        ("postgresql://ada@db/app?password=secret&a=b", "postgresql://ada@db/app?password=***&a=b"),
        ("host=db password=secret dbname=app", "host=db password=*** dbname=app"),
        ("host=db password = 'se cr\\'et' dbname=app", "host=db password = *** dbname=app"),
        ("postgresql:///app?host=/run/socket", "postgresql:///app?host=/run/socket"),
        ("postgresql://ada:se/cr?e@t@db/app", "postgresql://ada:***@db/app"),
        ("postgresql://ada:secret@[::1", "postgresql://ada:***@[::1"),
        ("postgresql://db/app?sslpassword=secret", "postgresql://db/app?sslpassword=***"),
        ("postgresql://ada@[::1]:5432/app", "postgresql://ada@[::1]:5432/app"),
    ],
)
def test_a_url_is_shown_without_its_password(url, shown):
    assert connect.display_url(url) == shown


@pytest.mark.parametrize(
    ("problem", "reason"),
    [
        (REFUSED, "Connection refused"),
        (
            'connection to server on socket "/s" failed: FATAL:  database "x" does not exist',
            'database "x" does not exist',
        ),
        ('missing "=" after "foo" in connection info string', 'missing "=" after "foo"'),
        ("", "OperationalError"),
    ],
)
def test_the_reason_is_one_line_of_what_the_driver_says(problem, reason):
    error = connect.unreachable("postgresql://db/app", psycopg.OperationalError(problem))

    assert str(error).startswith(f"cannot connect to postgresql://db/app: {reason}")
    assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("mysql://ada:secret@db", "it is neither a postgresql:// URL nor a key=value string"),
        ("secret", "it is neither a postgresql:// URL nor a key=value string"),
        ("host=db password=secret x", "it is neither a postgresql:// URL nor a key=value string"),
        ("host=db colour=red", 'invalid connection option "colour"'),
        ("postgresql://ada:secret%zz@db", "invalid percent-encoded token"),
        (
            "postgresql://ada:secret@[::1",
            'end of string reached when looking for matching "]" in IPv6',
        ),
        ("postgresql://db/app?colour=red", 'invalid URI query parameter: "colour"'),
    ],
)
async def test_a_url_that_cannot_be_read_is_told_without_its_secret(url, reason):
    with pytest.raises(DatabaseUnreachable, match=f": {re.escape(reason)}") as caught:
        await connect.connect(url, name="test")

    assert url == "secret" or "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql://127.0.0.1:1/none", "mysql://db", "nonsense"])
async def test_what_is_no_postgresql_is_refused_in_both_worlds(url):
    with pytest.raises(DatabaseUnreachable):
        await connect.connect(url, name="test")
    with pytest.raises(DatabaseUnreachable):
        connect.connect_sync(url)


async def test_a_server_that_is_too_old_is_refused_by_its_version(server_url, monkeypatch):
    monkeypatch.setattr(connect, "MINIMUM_SERVER_VERSION", 990000)

    said = r"the server is PostgreSQL \d+.*needs PostgreSQL 15"
    with pytest.raises(DatabaseTooOld, match=said):
        await connect.connect(server_url, name="test")
    with pytest.raises(DatabaseTooOld, match=said):
        connect.connect_sync(server_url)


async def test_a_silent_network_is_an_error_within_seconds(server_url):
    async with await connect.connect(server_url, name="test") as connection:
        parameters = [connection.info.get_parameters()]
    with connect.connect_sync(server_url) as blocking:
        parameters.append(blocking.info.get_parameters())

    for given in parameters:
        assert (given["keepalives_idle"], given["tcp_user_timeout"]) == ("5", "15000")
        assert given["connect_timeout"] == "10"


async def test_the_url_decides_how_long_a_silent_network_is_waited_for(server_url):
    url = make_conninfo(server_url, tcp_user_timeout=1234, connect_timeout=3)

    async with await connect.connect(url, name="test") as connection:
        given = connection.info.get_parameters()

    assert (given["tcp_user_timeout"], given["connect_timeout"]) == ("1234", "3")


@pytest.mark.parametrize("use_pooler", [False, True])
async def test_nothing_is_compiled_on_a_connection_of_ours(database_url, connection, use_pooler):
    connection.execute(f'alter database "{connection.info.dbname}" set jit = on')

    async with await connect.connect(database_url, name="test", use_pooler=use_pooler) as own:
        shown = [await (await own.execute("show jit")).fetchone()]
    async with await connect.connect(database_url, name="test", pins_plans=True) as hot:
        shown.append(await (await hot.execute("show jit")).fetchone())
    with connect.connect_sync(database_url, use_pooler=use_pooler) as blocking:
        shown.append(blocking.execute("show jit").fetchone())

    assert shown == [("off",)] * 3
