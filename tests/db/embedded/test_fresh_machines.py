"""Root on a machine where the system user is missing, or was left half-made."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.db.embedded.machines import Machine, fresh_machine
from tests.db.embedded.processes import ACQUIRE, run_as_ordinary_user
from tests.support.waiting import wait_until

TOGETHER = 8
ACQUIRE_AT_A_SIGNAL = """
import sys
from pathlib import Path
from mainspring.db import embedded

print("ready", flush=True)
sys.stdin.readline()
server = embedded.acquire(Path(sys.argv[1]))
print(Path(f"/proc/{server.pid}").stat().st_uid, flush=True)
sys.stdin.read()
"""
FIND_ACCOUNT = """
from mainspring.db.embedded.accounts import system_account

account = system_account()
print(account.uid, account.gid)
"""
WAITING_USERADD = """#!/bin/sh
echo begun >> {folder}/begun
read nothing < {folder}/gate
exec {folder}/etc.real-useradd "$@"
"""


@pytest.fixture
def machine(folder: Path) -> Machine:
    return fresh_machine(folder)


def served_by(machine: Machine, data_dir: Path) -> int:
    """The number of the user that runs the server."""
    process = machine.start(ACQUIRE_AT_A_SIGNAL, data_dir)
    said, complaint = process.communicate("\n", timeout=60)
    assert complaint == ""
    return int(said.split()[-1])


def is_blocked(pid: int) -> bool:
    """Whether the process waits for a file lock."""
    waiting = [
        line.split() for line in Path("/proc/locks").read_text().splitlines() if "->" in line
    ]
    return str(pid) in {fields[5] for fields in waiting}


def test_processes_that_start_together_create_one_user(machine, folder):
    processes = [machine.start(ACQUIRE_AT_A_SIGNAL, folder / "data") for _ in range(TOGETHER)]
    assert [process.stdout.readline() for process in processes] == ["ready\n"] * TOGETHER
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    lines = [process.stdout.readline() for process in processes]
    complaints = [process.communicate(timeout=60)[1] for process in processes]

    assert complaints == [""] * TOGETHER
    assert lines == [f"{machine.uid()}\n"] * TOGETHER


def test_a_useradd_whose_caller_was_killed_ends_before_another_begins(machine, folder):
    os.mkfifo(folder / "gate")
    machine.replace_useradd(WAITING_USERADD.format(folder=folder))
    killed = machine.start(FIND_ACCOUNT)
    wait_until((folder / "begun").exists, 20)
    killed.kill()
    killed.communicate()
    waiting = machine.start(FIND_ACCOUNT)
    begun = (folder / "begun").read_text
    wait_until(lambda: is_blocked(waiting.pid) or begun() != "begun\n", 20)
    (folder / "gate").write_text("go on\n")

    said, complaint = waiting.communicate(timeout=60)

    assert complaint == ""
    assert int(said.split()[0]) == machine.uid()
    assert begun() == "begun\n"


def leave_a_group(machine: Machine) -> None:
    subprocess.run(machine.command("groupadd", "--system", "mainspring"), check=True)


def leave_a_user_without_its_group(machine: Machine) -> None:
    machine.run(FIND_ACCOUNT)
    machine.forget("mainspring", ("group", "gshadow"))


def leave_locks_of_a_dead_process(machine: Machine) -> None:
    with subprocess.Popen("true") as dead:
        pass
    for file in ("passwd", "group", "shadow", "gshadow"):
        (machine.etc / f"{file}.lock").write_text(f"{dead.pid}\0")


@pytest.mark.parametrize(
    "leave", [leave_a_group, leave_a_user_without_its_group, leave_locks_of_a_dead_process]
)
def test_what_a_killed_useradd_leaves_is_made_whole(machine, leave: Callable[[Machine], None]):
    leave(machine)

    said, complaint = machine.run(FIND_ACCOUNT)

    assert complaint == ""
    assert int(said.split()[0]) == machine.uid()


def test_a_missing_useradd_is_said_in_one_line(machine):
    machine.replace_useradd("", mode=0o644)

    _, complaint = machine.run(FIND_ACCOUNT)

    assert complaint.splitlines()[-1] == (
        "mainspring.domain.errors.database.EmbeddedServerError: PostgreSQL does not run as root "
        "and useradd is missing; create a system user named mainspring, run as another user or "
        "set a database URL"
    )
    assert machine.uid() is None


def test_what_useradd_complains_of_is_said_in_one_line(machine):
    limits = (machine.etc / "login.defs").read_text()
    (machine.etc / "login.defs").write_text(f"{limits}\nSYS_UID_MIN 1\nSYS_UID_MAX 1\n")

    _, complaint = machine.run(FIND_ACCOUNT)

    last = complaint.splitlines()[-1]
    assert "EmbeddedServerError: cannot create the user mainspring: useradd: " in last
    assert last.endswith("run as another user or set a database URL")


def test_a_database_is_served_by_its_owner_when_the_user_has_another_number(machine, folder):
    before = served_by(machine, folder / "data")
    passwd = machine.etc / "passwd"
    passwd.write_text(passwd.read_text().replace(f":{before}:", f":{before - 10}:"))

    assert machine.uid() == before - 10
    assert served_by(machine, folder / "data") == before


def test_the_owner_of_a_data_directory_runs_its_server_and_can_use_it_without_root(machine, folder):
    data_dir = folder / "data"
    data_dir.mkdir(mode=0o700)
    shutil.chown(data_dir, "nobody")

    assert served_by(machine, data_dir) == pwd.getpwnam("nobody").pw_uid
    assert machine.uid() is None
    done = run_as_ordinary_user(ACQUIRE, data_dir)
    assert (done.returncode, done.stderr) == (0, "")
