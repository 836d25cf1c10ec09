"""The health port and the health file of real processes."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from signal import SIGCONT, SIGSTOP, SIGTERM

import httpx
import psycopg
import pytest

from mainspring.settings import load
from tests.support import apps, reading
from tests.support.health import Probe, free_port
from tests.support.processes import StartWorker, worker_processes
from tests.support.proxies import LossyProxy
from tests.support.schedules import scheduler_processes
from tests.support.servers import OwnServer, own_server
from tests.support.waiting import wait_until

pytestmark = pytest.mark.xdist_group("own server")


@pytest.fixture
def server() -> Iterator[OwnServer]:
    with own_server() as server:
        yield server


@pytest.fixture
def probe() -> Probe:
    return Probe(free_port())


@pytest.fixture
async def proxy(database_url: str) -> AsyncIterator[LossyProxy]:
    """A way to the database that can be closed for as long as a test likes."""
    proxy = LossyProxy(database_url)
    await proxy.start()
    yield proxy
    await proxy.stop()


@pytest.mark.parametrize("options", [(), ("--with-scheduler",)])
async def test_a_worker_is_healthy_but_not_ready_while_the_database_is_down(
    proxy: LossyProxy, tmp_path: Path, probe: Probe, options: tuple[str, ...]
):
    with worker_processes(proxy.url, tmp_path) as start:
        start(*options, health_port=probe.port, lease_seconds=2)
        await probe.abecomes("readyz", 200)

        await proxy.stop()
        await probe.abecomes("readyz", 503, within=2)
        # Beyond the lease, and beyond three rests of every loop.
        assert await probe.astatuses("healthz", seconds=8) == {200}
        reasons = await asyncio.to_thread(probe.reasons, "readyz")
        assert reasons == ["worker: the lease is lost", "the database cannot be reached"]

        await proxy.start()
        await probe.abecomes("readyz", 200, within=20)


async def test_a_scheduler_is_ready_again_within_two_seconds(
    proxy: LossyProxy, tmp_path: Path, probe: Probe
):
    with scheduler_processes(proxy.url, tmp_path) as start:
        start(health_port=probe.port)
        await probe.abecomes("readyz", 200)

        await proxy.stop()
        await probe.abecomes("readyz", 503, within=2)
        assert await probe.astatuses("healthz", seconds=4) == {200}
        await proxy.start()
        await probe.abecomes("readyz", 200, within=2)


def test_a_handler_that_blocks_the_event_loop_makes_its_worker_unhealthy(
    connection: psycopg.Connection, start_worker: StartWorker, probe: Probe, tmp_path: Path
):
    alive = tmp_path / "alive"
    connection.execute("select pg_advisory_lock(%s)", (apps.BLOCKED,))
    start_worker(health_port=probe.port, health_file=alive)
    probe.becomes("healthz", 200)
    apps.block_the_loop.enqueue()
    wait_until(lambda: reading.notes(connection, "blocked"), 30)

    probe.becomes("healthz", 503, within=10)
    assert any("the event loop" in reason for reason in probe.reasons("healthz"))
    touched_at = alive.stat().st_mtime
    until = time.monotonic() + 6
    wait_until(lambda: time.monotonic() > until, 10)
    assert alive.stat().st_mtime == touched_at, "it is touched although nothing moves"

    connection.execute("select pg_advisory_unlock(%s)", (apps.BLOCKED,))
    probe.becomes("healthz", 200, within=10)
    wait_until(lambda: alive.stat().st_mtime > touched_at, 10, "it is touched again")


def test_a_worker_that_stops_is_not_ready(
    connection: psycopg.Connection, start_worker: StartWorker, probe: Probe
):
    worker = start_worker(health_port=probe.port)
    probe.becomes("readyz", 200)
    apps.nap.enqueue(seconds=60.0)
    wait_until(lambda: "running" in reading.states(connection), 10, "it runs a job")

    worker.signal(SIGTERM)
    probe.becomes("readyz", 503, within=5)
    assert probe.reasons("readyz") == ["worker: stopping"]
    assert probe.status("healthz") == 200


def test_what_is_no_probe_does_no_harm(start_worker: StartWorker, probe: Probe):
    start_worker(health_port=probe.port)
    probe.becomes("healthz", 200)
    for junk in (b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"x" * 100_000, b""):
        with socket.create_connection(("127.0.0.1", probe.port)) as client, suppress(OSError):
            client.sendall(junk)
            client.shutdown(socket.SHUT_WR)
            client.recv(1000)
    silent = [socket.create_connection(("127.0.0.1", probe.port)) for _ in range(60)]

    assert probe.status("elsewhere") in (404, None)
    for client in silent:
        client.close()
    probe.becomes("healthz", 200, within=10)
    address = f"http://127.0.0.1:{probe.port}/healthz"
    assert httpx.post(address).status_code == 405
    head = httpx.head(address)
    assert (head.status_code, head.content) == (200, b"")


def test_a_port_that_is_taken_is_refused_at_once(start_worker: StartWorker, probe: Probe):
    with socket.create_server(("127.0.0.1", probe.port)):
        worker = start_worker(health_port=probe.port)

        assert worker.exit_code() == 2
    assert f"setting health_port: {probe.port} is already in use" in worker.log


def test_a_file_that_may_not_be_written_is_refused_at_once(start_worker: StartWorker):
    worker = start_worker(health_file="/nowhere/alive")

    assert worker.exit_code() == 2
    assert "setting health_file: cannot touch /nowhere/alive: No such file" in worker.log


def test_several_processes_have_a_port_each(start_worker: StartWorker, probe: Probe):
    start_worker("--processes", "2", health_port=probe.port)

    probe.becomes("readyz", 200)
    Probe(probe.port + 1).becomes("readyz", 200)


def test_a_paused_database_makes_no_worker_unhealthy(
    server: OwnServer, tmp_path: Path, probe: Probe
):
    apps.app.use(load(database_url=server.url))
    with worker_processes(server.url, tmp_path) as start:
        start("--with-scheduler", health_port=probe.port, lease_seconds=2)
        probe.becomes("readyz", 200)
        server.signal(SIGSTOP)
        try:
            probe.becomes("readyz", 503, within=2)
            until = time.monotonic() + 6
            wait_until(lambda: time.monotonic() > until, 10)
            assert probe.status("healthz") == 200
        finally:
            server.signal(SIGCONT)
        probe.becomes("readyz", 200, within=30)
    apps.app.close()
