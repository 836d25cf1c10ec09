"""What killed processes leave behind, and what must not be killed in turn."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mainspring.db import embedded
from mainspring.db.embedded import owners, servers
from mainspring.db.embedded.postmasters import Postmaster
from tests.db.embedded.folders import owner_of
from tests.db.embedded.processes import ACQUIRE, answers, run_python
from tests.support.waiting import wait_until


@pytest.fixture
def stranger(data_dir: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A live program, run by the same account as the server, so PostgreSQL respects its pid."""
    with subprocess.Popen(("sleep", "100"), **owner_of(data_dir / "postgres")) as process:
        yield process
        process.kill()


def forge_pid_file(data_dir: Path, pid: int) -> None:
    cluster = data_dir / "postgres"
    lines = (pid, cluster, 1700000000, 5432, data_dir / "socket", "", "1 1", "ready")
    pid_file = cluster / "postmaster.pid"
    pid_file.write_text("".join(f"{line}\n" for line in lines))
    os.chown(pid_file, cluster.stat().st_uid, cluster.stat().st_gid)


def test_a_killed_user_blocks_nothing(data_dir, hold):
    killed = hold(data_dir)
    pid, url = killed.server()
    killed.kill()

    with embedded.running(data_dir) as server:
        assert server.pid == pid
    assert not answers(url)


def test_a_killed_server_is_started_again_with_its_data(data_dir):
    with embedded.running(data_dir) as killed, psycopg.connect(killed.url) as connection:
        connection.execute("create table kept as select 42 as answer")
        connection.commit()
        os.kill(killed.pid, signal.SIGKILL)

        with embedded.running(data_dir) as server, psycopg.connect(server.url) as again:
            assert server.pid != killed.pid
            assert again.execute("select answer from kept").fetchone() == (42,)
    assert not answers(server.url)


def test_a_server_that_is_killed_while_it_is_joined_is_started_again(data_dir, hold, monkeypatch):
    first = hold(data_dir)
    pid, _ = first.server()
    ensure = owners.ensure_database
    killed: list[int] = []

    def kill_first(postmaster: Postmaster, database: str) -> None:
        if not killed:
            killed.append(postmaster.pid)
            os.kill(postmaster.pid, signal.SIGKILL)
            wait_until(lambda: not postmaster.answers())
        ensure(postmaster, database)

    monkeypatch.setattr(servers, "ensure_database", kill_first)

    with embedded.running(data_dir) as server:
        assert killed == [pid]
        assert answers(server.url)


def test_a_start_waits_for_what_survives_of_a_killed_server(data_dir, hold):
    log = data_dir / "server.log"
    killed, before = embedded.acquire(data_dir), len(log.read_text())
    with psycopg.connect(killed.url) as connection:
        os.kill(connection.info.backend_pid, signal.SIGSTOP)
        os.kill(killed.pid, signal.SIGKILL)
        holder = hold(data_dir)
        wait_until(lambda: "is still in use" in log.read_text()[before:], 20)
        os.kill(connection.info.backend_pid, signal.SIGCONT)

    assert holder.server()[0] != killed.pid
    embedded.release(killed)


def test_a_pid_file_that_names_an_unrelated_program_does_not_stop_the_start(data_dir, stranger):
    forge_pid_file(data_dir, stranger.pid)

    with embedded.running(data_dir) as server:
        assert server.pid != stranger.pid
        assert answers(server.url)


def test_stopping_does_not_signal_a_program_that_got_the_pid(data_dir, stranger):
    server = embedded.acquire(data_dir)
    os.kill(server.pid, signal.SIGKILL)
    forge_pid_file(data_dir, stranger.pid)

    embedded.release(server)

    assert stranger.poll() is None
    (data_dir / "postgres" / "postmaster.pid").unlink(missing_ok=True)


def test_the_server_outlives_an_interrupt_typed_at_the_process_that_started_it(data_dir, hold):
    starter = hold(data_dir)
    starter.server()
    with embedded.running(data_dir) as server:
        os.killpg(starter.process.pid, signal.SIGINT)
        starter.process.wait(timeout=30)

        assert answers(server.url)


def test_the_server_holds_neither_our_output_nor_our_lock(data_dir):
    process = run_python(ACQUIRE + "os._exit(0)", data_dir)
    url = process.communicate(timeout=30)[0].strip()
    assert answers(url)

    embedded.release(embedded.acquire(data_dir))

    assert not answers(url)
