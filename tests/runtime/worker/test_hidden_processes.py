"""Two workers of two users on a host whose /proc shows each only its own processes: neither takes
the other for dead."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from signal import SIGKILL

import psycopg
import pytest

from mainspring import Mainspring
from tests.support import apps, reading
from tests.support.processes import APP
from tests.support.waiting import wait_until
from tests.support.warm import ROOT

USERS = (64_001, 64_002)
# Another user could read neither our Python nor the socket of the server, but for this capability;
# it shows nothing in /proc.
AS_USER = (
    "setpriv --reuid {uid} --regid {uid} --clear-groups"
    " --inh-caps +dac_override --ambient-caps +dac_override"
)
# In one mount namespace, in which /proc hides the processes of others.
BOTH = """
mount -t proc -o hidepid=2 proc /proc || exit 77
{first} "$@" & {second} "$@" & wait
"""
SEEN = f"""
import os, subprocess, sys
other = subprocess.Popen(["setpriv", "--reuid", "{USERS[1]}", "sleep", "60"])
while os.stat(f"/proc/{{other.pid}}").st_uid != {USERS[1]}: pass
asked = "{AS_USER.format(uid=USERS[0])} test -e /proc/" + str(other.pid)
sees = subprocess.run(asked.split()).returncode == 0
other.kill()
sys.exit(sees)
"""
NEEDED = ("unshare", "setpriv")
# So long a job runs while each worker looks for dead ones every second.
SECONDS = 6


def can_hide_processes() -> bool:
    """Whether one of our users would not see a process of the other."""
    if os.getuid() != 0 or not all(map(shutil.which, NEEDED)):
        return False
    hidden = 'mount -t proc -o hidepid=2 proc /proc && exec "$@"'
    asked = ["unshare", "-m", "sh", "-c", hidden, "sh", sys.executable, "-c", SEEN]
    return subprocess.run(asked, check=False, capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(
    not can_hide_processes(), reason="it takes root, a mount namespace and two users"
)


@pytest.fixture
def workers(shared_app: Mainspring, database_url: str, tmp_path: Path) -> Iterator[Path]:
    """`mainspring worker` twice, once for each user; the file with what they say."""
    log = tmp_path / "workers.log"
    users = dict(zip(("first", "second"), (AS_USER.format(uid=uid) for uid in USERS), strict=True))
    program = [sys.executable, "-m", "mainspring", "worker", "--app", APP, "--concurrency", "2"]
    environment = {
        **os.environ,
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT / "src"),
        "MAINSPRING_DATABASE_URL": database_url,
    }
    with log.open("wb") as stream:
        both = subprocess.Popen(
            ["unshare", "-m", "sh", "-c", BOTH.format(**users), "sh", *program],
            cwd=ROOT,
            env=environment,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        os.killpg(both.pid, SIGKILL)
        both.wait(10)


def living(connection: psycopg.Connection) -> set[int]:
    query = "select worker_id from mainspring.worker_status where is_alive"
    return {worker_id for (worker_id,) in connection.execute(query)}


def test_neither_of_two_users_takes_the_worker_of_the_other_for_dead(
    connection: psycopg.Connection, workers: Path
):
    wait_until(lambda: len(living(connection)) == len(USERS), 60, "both workers register")
    both = living(connection)
    jobs = [apps.take_a_while.enqueue(seconds=SECONDS).id for _ in range(4)]

    wait_until(lambda: reading.are_all(connection, "succeeded"), 60, "all jobs end")

    attempts = [reading.attempts(connection, job_id) for job_id in jobs]
    assert [[each["status"] for each in of_job] for of_job in attempts] == [["succeeded"]] * 4
    assert {of_job[0]["worker_id"] for of_job in attempts} == both, "each ran some"
    assert living(connection) == both
    said = workers.read_text()
    assert not [event for event in ("lease_lost", "job_recovered", "job_lost") if event in said]
