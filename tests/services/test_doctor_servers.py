"""What is wrong with a whole server is caused on one of its own."""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from signal import Signals

import psycopg
import pytest

from mainspring.db.embedded import acquire, release
from tests.support.doctors import doctor_of, follow
from tests.support.servers import OwnServer, own_server
from tests.support.waiting import await_until

pytestmark = pytest.mark.xdist_group("doctor_servers")
# Read when the server starts.
_SETTINGS = (
    "max_prepared_transactions = 2",
    "superuser_reserved_connections = 190",
    "max_notify_queue_pages = 64",
    "wal_level = logical",
)


@pytest.fixture(scope="module")
def own() -> Iterator[OwnServer]:
    with own_server() as server:
        with psycopg.connect(_superuser(server), autocommit=True) as admin:
            for setting in _SETTINGS:
                admin.execute(f"alter system set {setting}".encode())
        server.take_down(Signals.SIGQUIT)
        server.bring_back()
        yield server


@pytest.fixture
def admin(own: OwnServer) -> Iterator[psycopg.Connection]:
    with psycopg.connect(_superuser(own), autocommit=True) as connection:
        yield connection


def _superuser(server: OwnServer) -> str:
    server_again = acquire(server._folder)
    try:
        return server_again.superuser_url
    finally:
        release(server_again)


@pytest.mark.parametrize(
    ("check", "setting"),
    [
        ("D02", "autovacuum"),
        ("D02", "track_counts"),
        ("D17", "fsync"),
        ("D17", "full_page_writes"),
        ("D18", "synchronous_commit"),
    ],
)
async def test_a_setting_that_is_off_is_found_until_it_is_on(
    own: OwnServer, admin: psycopg.Connection, check: str, setting: str
):
    follow(admin, f"alter system set {setting} = off; select pg_reload_conf();")

    async def is_found() -> bool:
        async with doctor_of(own.url) as doctor:
            return bool(await doctor.findings(check))

    await _until(is_found, True)
    async with doctor_of(own.url) as doctor:
        finding = await doctor.finding(check)
    assert finding.fact == f"{setting} is off"
    follow(admin, finding.advice)
    await _until(is_found, False)


async def _until(is_found, expected: bool) -> None:
    """The server reads its settings a little later."""
    for _ in range(1000):
        if await is_found() is expected:
            return
    raise AssertionError(f"still not {expected}")


async def test_a_forgotten_prepared_transaction_is_found_and_rolled_back(
    own: OwnServer, admin: psycopg.Connection
):
    with psycopg.connect(own.url, autocommit=True) as other:
        other.execute("begin")
        other.execute("select pg_current_xact_id()")
        other.execute("prepare transaction 'nightly''s'")
    async with doctor_of(own.url) as doctor:
        assert await doctor.found("D05") == []

        finding = await doctor.finding("D05", later=timedelta(minutes=20))

        assert finding.severity == "critical"
        with psycopg.connect(own.url, autocommit=True) as owner:
            follow(owner, finding.advice)
        assert await doctor.found("D05", later=timedelta(minutes=20)) == []


async def test_connections_that_run_out_are_found(own: OwnServer):
    async with doctor_of(own.url) as doctor:
        assert await doctor.found("D09") == []
        with ExitStack() as sessions:
            for _ in range(8):
                sessions.enter_context(psycopg.connect(own.url))
            finding = await doctor.finding("D09")

        assert "of 10 connections are used" in finding.fact
        await await_until(lambda: own.number("select count(*) from pg_stat_activity") < 15)


async def test_notifications_that_nobody_reads_are_found(own: OwnServer, admin: psycopg.Connection):
    if admin.info.server_version < 170000:
        pytest.skip("the queue cannot be made small enough to fill before version 17")
    with psycopg.connect(own.url) as listener:
        listener.execute("listen something")
        listener.commit()
        listener.execute("select 1")
        for number in range(20):
            admin.execute("select pg_notify('something', %s)", (f"{number}" + "x" * 7000,))
        async with doctor_of(own.url) as doctor:
            ((check, severity),) = await doctor.found("D10")
            assert (check, severity) == ("D10", "warning")
            listener.commit()
            await await_until(lambda: _read(listener, admin))
            assert await doctor.found("D10") == []


def _read(listener: psycopg.Connection, admin: psycopg.Connection) -> bool:
    listener.execute("select 1")
    listener.commit()
    admin.execute("select pg_notify('something', '')")
    ((share,),) = admin.execute("select pg_notification_queue_usage()").fetchall()
    return bool(share < 0.1)


async def test_requested_checkpoints_are_found(own: OwnServer, admin: psycopg.Connection):
    admin.execute("select pg_stat_reset_shared()")
    for _ in range(11):
        admin.execute("create table if not exists t (n integer)")
        admin.execute("insert into t values (1)")
        admin.execute("checkpoint")

    async with doctor_of(own.url) as doctor:
        finding = await doctor.finding("D20")
        assert finding.fact == "11 checkpoints were requested and 0 were due"
        follow(admin, finding.advice)
        admin.execute("select pg_stat_reset_shared()")
        assert await doctor.found("D20") == []


async def test_a_replication_slot_without_a_consumer_is_found_and_dropped(
    own: OwnServer, admin: psycopg.Connection
):
    admin.execute("select pg_create_physical_replication_slot('harmless', true)")
    admin.execute("select pg_create_logical_replication_slot('forgotten', 'pgoutput')")
    async with doctor_of(own.url) as doctor:
        finding = await doctor.finding("D06")
        assert (finding.severity, "slot forgotten is inactive" in finding.fact) == ("warning", True)
        follow(admin, finding.advice)
        assert await doctor.found("D06") == []
    admin.execute("select pg_drop_replication_slot('harmless')")
