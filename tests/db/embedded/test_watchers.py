"""A killed server is started again by whoever uses it, without anybody asking for it."""

import os
import shutil
import signal
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg import pq

from mainspring.db import embedded
from tests.db.embedded.folders import open_folder, renamed
from tests.db.embedded.processes import answers
from tests.support.waiting import wait_until

WATCH = """
import json, sys
from pathlib import Path
from mainspring import telemetry
from mainspring.db import embedded
from mainspring.telemetry import LogFormat

sys.stderr = sys.stdout
telemetry.configure(LogFormat.JSON)
with embedded.running(Path(sys.argv[1])) as server:
    print(server.pid, server.url, flush=True)
    sys.stdin.read()
print("left", flush=True)
"""
COMPUTE = "select count(*) from generate_series(1, 1000000000000)"
COMPUTES = "select pid from pg_stat_activity where pid = %s and state = 'active'"


def pid_of(data_dir: Path) -> int:
    """As the server records it; 0 if it does not yet, or no longer."""
    try:
        return int((data_dir / "postgres" / "postmaster.pid").read_text().split("\n")[0])
    except (FileNotFoundError, ValueError):
        return 0


def next_pid(data_dir: Path, known: int) -> int:
    wait_until(lambda: pid_of(data_dir) not in {0, known}, 30)
    return pid_of(data_dir)


def is_back(data_dir: Path, url: str, killed: int) -> bool:
    return pid_of(data_dir) not in {0, killed} and answers(url)


def test_a_killed_server_is_started_again_by_each_process_that_is_left(data_dir, hold):
    first, second = hold(data_dir), hold(data_dir)
    pid, url = first.server()

    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_back(data_dir, url, pid), 30)
    first.kill()
    pid = pid_of(data_dir)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: is_back(data_dir, url, pid), 30)

    second.leave()
    assert not answers(url)


def test_two_processes_that_find_it_killed_start_one_server_and_stop_it_when_both_left(
    data_dir, hold
):
    first, second = hold(data_dir, WATCH), hold(data_dir, WATCH)
    (pid, url), _ = first.server(), second.server()

    os.kill(pid, signal.SIGKILL)
    told = [[holder.line(), holder.line()] for holder in (first, second)]

    for lost, back in told:
        assert '"embedded_server_lost"' in lost
        assert '"embedded_server_back"' in back
        assert f'"pid": {pid_of(data_dir)}' in back
    first.leave()
    assert answers(url)
    second.leave()
    assert not answers(url)


def test_a_server_that_was_told_to_end_is_started_again(data_dir, hold):
    pid, url = hold(data_dir).server()

    os.kill(pid, signal.SIGINT)

    wait_until(lambda: is_back(data_dir, url, pid), 30)


def test_a_server_killed_with_all_its_processes_is_started_again(data_dir, hold):
    pid, url = hold(data_dir).server()
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]

    for process in family:
        process.kill()

    wait_until(lambda: is_back(data_dir, url, pid), 30)


def test_a_server_killed_while_it_starts_is_started_once_more(data_dir, hold):
    pid, url = hold(data_dir).server()

    for _ in range(3):
        os.kill(pid, signal.SIGKILL)
        pid = next_pid(data_dir, pid)

    wait_until(lambda: answers(url), 30)


@pytest.mark.skipif(not Path("/proc/self/cwd").exists(), reason="survivors are found in /proc")
def test_a_query_that_outlives_its_server_does_not_delay_the_next_one(data_dir, hold):
    pid, url = hold(data_dir).server()
    computing = pq.PGconn.connect(url.encode())
    computing.send_query(COMPUTE.encode())
    with psycopg.connect(url, autocommit=True) as connection:
        wait_until(lambda: connection.execute(COMPUTES, (computing.backend_pid,)).fetchone(), 20)

    os.kill(pid, signal.SIGKILL)

    wait_until(lambda: is_back(data_dir, url, pid), 15)
    computing.finish()


def test_a_server_that_is_left_is_not_reported_as_lost(data_dir, hold):
    holder = hold(data_dir, WATCH)
    holder.server()

    said, _ = holder.process.communicate(timeout=30)

    assert said == "left\n"


def test_a_data_directory_that_was_moved_away_is_said_once_and_used_again_when_it_is_back(
    data_dir, folder, hold
):
    holder = hold(data_dir, WATCH)
    pid, url = holder.server()

    with renamed(data_dir, folder / "elsewhere"):
        os.kill(pid, signal.SIGKILL)
        said = [holder.line(), holder.line()]

    assert '"embedded_server_lost"' in said[0]
    assert f"{data_dir}/postgres was removed while its server was in use" in said[1]
    assert '"embedded_server_back"' in holder.line()
    assert is_back(data_dir, url, pid)


def test_a_process_leaves_without_complaint_when_the_data_directory_is_gone(hold):
    for folder in open_folder():
        holder = hold(folder / "data", WATCH)
        pid, _ = holder.server()
        shutil.rmtree(folder / "data")
        os.kill(pid, signal.SIGKILL)
        holder.line()
        assert "was removed while its server was in use" in holder.line()

        said, _ = holder.process.communicate(timeout=30)

        assert (said, holder.process.returncode) == ("left\n", 0)


def test_a_share_of_this_process_is_watched_too(data_dir):
    with embedded.running(data_dir) as server:
        os.kill(server.pid, signal.SIGKILL)

        wait_until(lambda: is_back(data_dir, server.url, server.pid), 30)
    assert not answers(server.url)
