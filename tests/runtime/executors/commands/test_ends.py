"""A command ends with its job, and whatever it started with it."""

import os
import signal
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

from mainspring import AttemptStatus, JobState, Mainspring
from mainspring.db.template_databases import fresh_database
from mainspring.settings import load
from tests.support.command_jobs import attempt, run
from tests.support.processes import StartWorker, is_running
from tests.support.waiting import await_until, wait_until
from tests.support.workers import ended, working

STUBBORN = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print(os.getpid(), flush=True)
    time.sleep(600)
print(os.getpid(), flush=True)
time.sleep(600)
"""


# Leaves the session and its parent, as a daemon does.
DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        time.sleep(600)
    os._exit(0)
os.wait()
"""


# As many as a bomb has in its first moment and no more: half of them in sessions of their own, and
# one that goes on making others, a hundred in all.
FORK_BOMB = """
first = os.getpid()
for _ in range(5):
    if os.fork() == 0 and os.getpid() % 2:
        os.setsid()
if os.getpid() == first:
    for _ in range(100):
        if os.fork() == 0:
            os.setsid()
            time.sleep(60)
            os._exit(0)
        time.sleep(0.02)
time.sleep(60)
"""


def processes(folder: Path) -> list[int]:
    """Those that run a program of this test's own folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if entry.name.isdigit() and bytes(folder) in words:
            found.append(int(entry.name))
    return found


def pids(text: str) -> list[int]:
    return [int(line) for line in text.split()]


async def test_a_timeout_ends_a_tree_that_does_not_listen(app, program):
    program("stubborn", STUBBORN)

    job = await run(app, ["stubborn"], timeout=timedelta(seconds=1))

    tried = await attempt(app, job)
    assert (job.state, tried.status) == (JobState.DEAD_LETTER, AttemptStatus.TIMEOUT)
    assert tried.exit_code == -signal.SIGKILL
    assert len(pids(tried.stdout_tail)) == 2
    assert not any(is_running(pid) for pid in pids(tried.stdout_tail))


async def test_a_program_that_listens_may_end_by_itself(app, program):
    program(
        "polite",
        "signal.signal(signal.SIGTERM, lambda *_: (print('bye', flush=True), sys.exit(0)))\n"
        "print('here', flush=True); time.sleep(60)",
    )

    tried = await attempt(app, await run(app, ["polite"], timeout=timedelta(seconds=1)))

    assert (tried.status, tried.stdout_tail) == (AttemptStatus.TIMEOUT, "here\nbye\n")


@pytest.mark.parametrize("source", [DAEMON], ids=["daemon"])
async def test_what_a_command_leaves_behind_dies_with_it(app, program, source):
    program("leaves", source)

    job = await run(app, ["leaves"])

    (left,) = pids((await attempt(app, job)).stdout_tail)
    assert job.state is JobState.SUCCEEDED
    assert not is_running(left)


async def test_the_command_of_another_database_with_the_same_numbers_lives_on(
    app, program, folder, server_url
):
    program("slow", "print('begun', flush=True); time.sleep(60)")
    program("leaves", DAEMON)
    await app.definitions.acreate("work", "command", argv=["slow"], max_attempts=1)
    async with working(app, command_directories=str(folder)):
        handle = await app.aenqueue("work", {})
        await await_until(lambda: processes(folder))
        with fresh_database(server_url) as url:
            settings = load(database_url=url, command_directories=str(folder))
            async with Mainspring(settings=settings) as other:
                assert (await run(other, ["leaves"])).id == handle.id

        assert (await handle.ajob()).state is JobState.RUNNING
        await app.jobs.acancel(handle.id)
        await ended(handle)


async def test_the_children_of_a_fork_bomb_die_with_the_job(app, program, folder):
    program("bomb", FORK_BOMB)
    await app.definitions.acreate("work", "command", argv=["bomb"], max_attempts=1)
    async with working(app, command_directories=app.settings.command_directories):
        handle = await app.aenqueue("work", {})
        await await_until(lambda: len(processes(folder)) > 40)
        await app.jobs.acancel(handle.id)
        await ended(handle)

        await await_until(lambda: not processes(folder))


def test_the_commands_of_a_worker_that_was_killed_die_too(
    start_worker: StartWorker,
    shared_app: Mainspring,
    connection: psycopg.Connection,
    folder,
    program,
):
    program("slow", "print('begun', flush=True); time.sleep(600)")
    shared_app.use(
        load(
            database_url=shared_app.settings.database_url or os.environ["MAINSPRING_DATABASE_URL"],
            command_directories=str(folder),
        )
    )
    shared_app.definitions.create("slow", "command", argv=["slow"])
    worker = start_worker(command_directories=folder, lease_seconds=2)
    worker.started(connection)
    handle = shared_app.enqueue("slow", {})
    wait_until(lambda: len(processes(folder)) == 1, 20, "the command runs")
    (first,) = processes(folder)

    worker.kill()
    start_worker(command_directories=folder, lease_seconds=2).started(connection)

    wait_until(lambda: not is_running(first), 20, "the orphan is ended")
    wait_until(lambda: handle.job().attempt == 2, 20, "the job runs again")


# What may run
