"""Commands as jobs: real programs, real process trees, a worker that ends them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest

from mainspring import JobState
from mainspring.domain.types import WaitsFor
from mainspring.settings import load
from tests.support import apps
from tests.support.command_jobs import attempt, run
from tests.support.processes import APP
from tests.support.waiting import await_until
from tests.support.warm import ROOT
from tests.support.workers import ended, working


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
    if b"KEY_OF_THE_SAFE=%MINE%" in environment:
        print(open(f"/proc/{pid}/cmdline").read().replace(chr(0), " "))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_no_command_reads_the_environment_of_its_worker(shared_app, connection, folder, program):
    key = uuid4().hex  # Another run of the tests may have the same program beside it.
    program("spy", SPY.replace("%MINE%", key))
    shared_app.use(load(command_directories=str(folder)))
    shared_app.definitions.create("spy", "command", argv=["spy"], max_attempts=1)
    # So that the worker has another process beside it.
    first = apps.add_up.enqueue(numbers=[1, 2])
    environment = {
        **os.environ,
        "MAINSPRING_COMMAND_DIRECTORIES": str(folder),
        "KEY_OF_THE_SAFE": key,
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
