"""Whether the database is there, asked within a second and not more often than it has to be."""

import asyncio
import socket
import time

import psycopg

from mainspring.db import migrate
from mainspring.services.health import DatabaseProbe, Health, body_of
from tests.support.waiting import await_until

ASKED = "select count(*) from pg_stat_activity where application_name = 'mainspring health'"


async def complaint(url: str) -> str | None:
    probe = DatabaseProbe(lambda: url, use_pooler=False)
    try:
        return await probe.complaint()
    finally:
        await probe.close()


async def becomes_ready(probe: DatabaseProbe) -> None:
    """Within a second, unless this machine has too much to do."""

    async def is_ready() -> bool:
        return await probe.complaint() is None

    await await_until(is_ready, what="the database is ready")


async def test_a_database_with_our_schema_is_ready(database_url):
    probe = DatabaseProbe(lambda: database_url, use_pooler=False)

    await becomes_ready(probe)
    await probe.close()


async def test_a_database_that_nobody_serves_is_not_ready():
    assert await complaint("postgresql://127.0.0.1:1/none") == "the database cannot be reached"


async def test_a_database_that_is_silent_is_given_up_within_a_second():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        said = await complaint(f"postgresql://127.0.0.1:{silent.getsockname()[1]}/none")

    assert said == "the database does not answer"
    assert time.monotonic() - began < 1


async def test_all_who_ask_a_silent_database_at_once_are_given_up():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://127.0.0.1:{silent.getsockname()[1]}/none"
        probe = DatabaseProbe(lambda: url, use_pooler=False)
        said = await asyncio.gather(*(probe.complaint() for _ in range(3)))
        await probe.close()

    assert set(said) == {"the database does not answer"}


async def test_a_schema_that_fits_only_newer_programs_is_not_ready(database_url, connection):
    number = migrate.newest() + 1
    connection.execute(
        "insert into mainspring.migrations (number, name, checksum, works_with)"
        " values (%(number)s, 'later', '', %(number)s)",
        {"number": number},
    )

    probe = DatabaseProbe(lambda: database_url, use_pooler=False)

    async def refusal() -> bool:
        return (await probe.complaint() or "").startswith("the schema of the database does not fit")

    await await_until(refusal, what="the schema is refused")
    await probe.close()


async def test_a_lost_connection_is_replaced(database_url, connection: psycopg.Connection):
    probe = DatabaseProbe(lambda: database_url, use_pooler=False)
    await becomes_ready(probe)
    connection.execute(
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where application_name = 'mainspring health' and datname = current_database()"
    )

    await becomes_ready(probe)
    await probe.close()


async def test_many_who_ask_at_once_use_one_connection(database_url, connection):
    probe = DatabaseProbe(lambda: database_url, use_pooler=False)
    await becomes_ready(probe)

    assert set(await asyncio.gather(*(probe.complaint() for _ in range(50)))) == {None}
    query = f"{ASKED} and datname = current_database()"
    assert connection.execute(query).fetchone() == (1,)
    await probe.close()


async def test_an_answer_says_nothing_but_reasons():
    url = "postgresql://ada:secret@127.0.0.1:1/none"
    health = Health(DatabaseProbe(lambda: url, use_pooler=False))

    assert body_of(health.healthy()) == b'{"status":"ok","reasons":[]}'
    assert body_of(await health.ready()) == (
        b'{"status":"failing","reasons":["the database cannot be reached"]}'
    )
