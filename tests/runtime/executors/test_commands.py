"""Commands as jobs: real programs, real process trees, a worker that ends them."""

import os
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mainspring import AttemptStatus, Job, JobState, Mainspring
from mainspring.db.template_databases import fresh_database
from mainspring.domain.types import WaitsFor
from mainspring.settings import load
from tests.support import apps
from tests.support.processes import APP, StartWorker, is_running
from tests.support.waiting import await_until, wait_until
from tests.support.warm import ROOT
from tests.support.workers import ended, working

Program = Callable[[str, str], Path]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "programs"
    made.mkdir()
    return made.resolve()


@pytest.fixture
def program(folder: Path) -> Program:
    """Writes an executable Python script into the folder of allowed programs."""

    def write(name: str, source: str) -> Path:
        path = folder / name
        path.write_text(f"#!{sys.executable}\nimport os, signal, sys, time\n{source}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return write


@pytest.fixture
async def app(database_url: str, folder: Path) -> AsyncIterator[Mainspring]:
    settings = load(database_url=database_url, command_directories=str(folder))
    async with Mainspring(settings=settings) as app:
        yield app


async def run(app: Mainspring, argv: list[Any], payload: Any = None, **fields: Any) -> Job:
    """A job of a definition of the command, once it is over."""
    fields = {"max_attempts": 1, **fields}
    await app.definitions.acreate("work", "command", argv=argv, **fields)
    async with working(app, command_directories=app.settings.command_directories):
        return await ended(await app.aenqueue("work", payload or {}))


async def attempt(app: Mainspring, job: Job) -> Any:
    (only,) = await app.jobs.aattempts(job.id)
    return only


async def test_a_program_runs_with_its_arguments(app, program):
    program("show", "print(sys.argv[1:])")

    job = await run(app, ["show", "--id", "{id}", ["--note={note}"]], {"id": "a b; $(id)\n'"})

    assert (job.state, job.result) == (JobState.SUCCEEDED, {"exit_code": 0})
    tried = await attempt(app, job)
    assert tried.stdout_tail == "['--id', \"a b; $(id)\\n'\"]\n"
    assert (tried.exit_code, tried.stderr_tail) == (0, None)


async def test_both_streams_are_kept_and_only_their_ends(app, program):
    program("loud", "print('x' * 200_000); print('end'); print('oh', file=sys.stderr)")

    tried = await attempt(app, await run(app, ["loud"]))

    assert tried.stdout_tail.startswith("... 134")
    assert tried.stdout_tail.endswith("xxx\nend\n")
    assert len(tried.stdout_tail) < 70_000
    assert tried.stderr_tail == "oh\n"


async def test_what_is_printed_is_shown_while_it_runs(app, program, connection):
    program("slow", "print('begun', flush=True); time.sleep(60)")
    await app.definitions.acreate("work", "command", argv=["slow"])
    async with working(app, command_directories=app.settings.command_directories):
        handle = await app.aenqueue("work", {})

        async def shown() -> bool:
            tries = await app.jobs.aattempts(handle.id)
            return bool(tries) and tries[0].stdout_tail == "begun\n" and tries[0].pid > 0

        await await_until(shown)
        await app.jobs.acancel(handle.id)
        assert (await ended(handle)).state is JobState.CANCELED


async def test_bytes_that_are_no_text_are_kept_as_well_as_can_be(app, program):
    program("noise", "sys.stdout.buffer.write(b'\\xff\\x00ok')")

    assert (await attempt(app, await run(app, ["noise"]))).stdout_tail == "��ok"


@pytest.mark.parametrize(
    ("code", "fields", "state"),
    [
        (0, {}, JobState.SUCCEEDED),
        (3, {}, JobState.DEAD_LETTER),
        (3, {"success_codes": [0, 3]}, JobState.SUCCEEDED),
        (3, {"fail_codes": [3]}, JobState.FAILED),
        (0, {"success_codes": [3]}, JobState.DEAD_LETTER),
    ],
)
async def test_an_exit_code_means_what_the_definition_says(app, program, code, fields, state):
    program("quit", f"sys.exit({code})")

    job = await run(app, ["quit"], **fields)

    assert job.state is state
    assert (await attempt(app, job)).exit_code == code
    if state is not JobState.SUCCEEDED:
        assert job.last_error == f"the command exited with code {code}"


async def test_a_signal_is_told_by_its_name(app, program):
    program("crash", "os.kill(os.getpid(), signal.SIGSEGV)")

    job = await run(app, ["crash"])

    assert job.last_error == "the command was terminated by SIGSEGV"


async def test_a_command_has_no_input_and_only_the_environment_it_asked_for(
    app, program, monkeypatch
):
    monkeypatch.setenv("SECRET_TOKEN", "hunter2")
    monkeypatch.setenv("TZ", "UTC")
    program("look", "print(sys.stdin.read() == '', sorted(os.environ))")

    printed = (await attempt(app, await run(app, ["look"], environment=["TZ"]))).stdout_tail

    assert printed.startswith("True ")
    assert "SECRET_TOKEN" not in printed
    assert "'TZ'" in printed
    assert "MAINSPRING_DATABASE_URL" not in printed
    for name in ("MAINSPRING_JOB_ID", "MAINSPRING_TENANT_ID", "MAINSPRING_ATTEMPT"):
        assert f"'{name}'" in printed


async def test_a_variable_that_is_not_allowed_is_refused(app, program):
    program("look", "")

    job = await run(app, ["look"], environment=["SECRET_TOKEN"])

    assert job.last_error is not None
    assert job.last_error.startswith("the variable SECRET_TOKEN is not allowed for commands")


async def test_a_command_runs_where_the_definition_says(app, program, tmp_path):
    program("where", "print(os.getcwd())")

    tried = await attempt(app, await run(app, ["where"], working_directory=str(tmp_path)))

    assert tried.stdout_tail == f"{tmp_path.resolve()}\n"


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({}, "the payload lacks 'id', which the command needs"),
        ({"id": "--rm"}, "'id' starts with a dash and could be mistaken for an option"),
        ({"id": ["a"]}, "'id' must be a string, a number or a boolean"),
    ],
)
async def test_a_payload_that_cannot_become_arguments_fails_for_good(app, program, payload, said):
    program("show", "")

    job = await run(app, ["show", "--id", "{id}"], payload, max_attempts=5)

    assert (job.state, job.attempt) == (JobState.FAILED, 1)
    assert job.last_error is not None
    assert job.last_error.startswith(said)


async def test_the_tenant_of_a_command_is_that_of_the_job_whatever_the_payload_says(app, program):
    program("show", "print(sys.argv[1:])")
    await app.tenants.acreate("acme")
    await app.definitions.acreate("work", "command", argv=["show", "--tenant", "{job.tenant}"])
    payload = {"job": {"tenant": "bell"}, "job.tenant": "bell", "tenant": "bell"}

    async with working(app, command_directories=app.settings.command_directories):
        job = await ended(await app.aenqueue("work", payload, tenant_id="acme"))

    (tried,) = await app.jobs.aattempts(job.id, tenant_id="acme")
    assert tried.stdout_tail == "['--tenant', 'acme']\n"


async def test_a_stored_template_that_would_let_the_payload_choose_an_option_runs_nothing(
    app, program, connection
):
    program("show", "print(sys.argv[1:])")
    await app.definitions.acreate("work", "command", argv=["show"])
    spec = """jsonb_set(spec, '{argv}', '["show", "--{o}"]')"""
    connection.execute(f"update mainspring.definitions set spec = {spec} where key = 'work'")

    async with working(app, command_directories=app.settings.command_directories):
        job = await ended(await app.aenqueue("work", {"o": "checkpoint-action=exec=id"}))

    assert job.state is JobState.FAILED
    assert "the payload would choose the option" in (job.last_error or "")


# Root in a container, and any other user, has none of CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON.
UNPRIVILEGED = """
import ctypes, os, sys
for capability in (19, 21, 38):
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "mainspring", *sys.argv[1:]])
"""
SPY = """
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        environment = open(f"/proc/{pid}/environ", "rb").read()
    except OSError:
        continue
    if b"KEY_OF_THE_SAFE=" in environment:
        print(open(f"/proc/{pid}/cmdline").read().replace(chr(0), " "))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_no_command_reads_the_environment_of_its_worker(shared_app, connection, folder, program):
    program("spy", SPY)
    shared_app.use(load(command_directories=str(folder)))
    shared_app.definitions.create("spy", "command", argv=["spy"], max_attempts=1)
    # So that the worker has another process beside it.
    first = apps.add_up.enqueue(numbers=[1, 2])
    environment = {
        **os.environ,
        "MAINSPRING_COMMAND_DIRECTORIES": str(folder),
        "KEY_OF_THE_SAFE": "1234",
    }
    # Supervised, so that there is a third process that has it.
    arguments = ("worker", "--app", APP, "--processes", "2")
    command = [sys.executable, "-c", UNPRIVILEGED, *arguments]
    with ended_at_last(subprocess.Popen(command, env=environment, cwd=ROOT)):
        assert first.result(30) == 3
        spy = shared_app.enqueue("spy", {})
        assert spy.result(30) == {"exit_code": 0}

    (tried,) = shared_app.jobs.attempts(spy.id)
    assert tried.stdout_tail is None


@contextmanager
def ended_at_last(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    try:
        yield
    finally:
        process.terminate()
        process.wait(20)


# Ending

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


async def test_a_program_is_found_once_and_pinned(app, program, folder, tmp_path):
    path = program("show", "print('ours')")
    state = await app.definitions.acreate("work", "command", argv=["show"], max_attempts=1)
    assert state.definition.spec["executable"] == str(path)

    elsewhere = tmp_path / "show"
    elsewhere.write_text(f"#!{sys.executable}\nprint('theirs')\n")
    elsewhere.chmod(0o755)
    path.unlink()
    path.symlink_to(elsewhere)

    async with working(app, command_directories=str(folder)):
        job = await ended(await app.aenqueue("work", {}))
    assert job.last_error == f"{path} is not the path of a program; update the definition"


async def test_a_definition_by_plain_sql_runs_nothing_that_is_not_allowed(app, connection, folder):
    connection.execute(
        "insert into mainspring.definitions (key, kind, max_attempts, spec) values"
        """ ('evil', 'command', 1, '{"argv": ["sh"], "executable": "/usr/bin/env"}'),"""
        """ ('vague', 'command', 1, '{"argv": ["sh"]}')"""
    )
    async with working(app, command_directories=str(folder)):
        evil = await ended(await app.aenqueue("evil", {}))
        vague = await ended(await app.aenqueue("vague", {}))

    assert evil.last_error == "/usr/bin/env is not in any of this worker's command directories"
    assert vague.last_error == "sh is not the path of a program; update the definition"


async def test_a_worker_without_directories_leaves_commands_to_others(app, program):
    program("show", "")
    await app.definitions.acreate("work", "command", argv=["show"])
    handle = await app.aenqueue("work", {})

    async with working(app):

        async def waits() -> bool:
            return (await handle.ajob()).waits_for is WaitsFor.HANDLER

        await await_until(waits)
    async with working(app, command_directories=app.settings.command_directories):
        assert (await ended(handle)).state is JobState.SUCCEEDED
