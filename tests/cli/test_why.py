"""`mainspring why` as a person meets it: what it prints, and that its fixes work as printed."""

import json
import shlex

import pytest

from mainspring.domain.types import JobState
from tests.support import rows

ADA = '{"name": "Ada"}'


def run_fix(each_command, job_id: int) -> tuple[str, str]:
    """The first reason before and after its fix was run as printed."""
    (before,) = each_command(["why", str(job_id), "--json"])
    first = json.loads(before.stdout)["reasons"][0]
    program, *words = shlex.split(first["fix"])
    assert program == "mainspring"
    done, after = each_command(words, ["why", str(job_id), "--json"])
    assert done.returncode == 0, (first["fix"], done.stderr)
    return first["code"], json.loads(after.stdout)["reasons"][0]["code"]


def test_reasons_are_printed_with_what_resolves_them(each_command):
    *_, said, missing = each_command(
        ["enqueue", "hello", ADA],
        ["queues", "pause", "default", "--reason", "provider down"],
        ["why", "1"],
        ["why", "77"],
    )

    assert said.stdout.startswith("Job 1 is queued.\n  queue_paused  Its queue default was paused")
    assert "(provider down)" in said.stdout
    assert "\n    mainspring queues resume default\n" in said.stdout
    assert "There is no job 77; the newest is 1." in missing.stdout


def test_what_is_no_id_is_refused(each_command):
    (done,) = each_command(["why", "hello"])

    assert done.returncode == 2
    assert "'hello' is not the id of a job" in done.stderr


@pytest.mark.parametrize(
    ("commands", "code"),
    [
        ([["enqueue", "hello", ADA, "--approvals", "1"]], "approval"),
        ([["enqueue", "hello", ADA], ["queues", "pause", "default"]], "queue_paused"),
        ([["enqueue", "hello", ADA], ["jobs", "cancel", "1"]], "ended"),
    ],
)
def test_a_fix_works_as_printed(each_command, commands, code):
    each_command(*commands)

    before, after = run_fix(each_command, 1)

    assert before == code
    assert after == "nobody_serves"


def worker(connection, **columns: object) -> None:
    row = {
        "worker_id": 7, "pid": 1, "concurrency": 9, "name": "w", "host": "h",
        "process_identity": "i", "queues": ["default"], "version": "1", "expires_at": "tomorrow",
    }  # fmt: skip
    rows.insert(connection, "workers", **{**row, **columns})


@pytest.mark.parametrize(
    ("limit", "is_own", "code"),
    [
        ("concurrency", False, "limit_places"),
        ("key_concurrency", False, "limit_places"),
        ("concurrency", True, "limit_places"),
        ("concurrency", False, "limit_zero"),
    ],
)
def test_the_fix_of_a_limit_works(each_command, connection, limit, is_own, code):
    worker(connection)
    name = "tied" if is_own else "few"
    if not is_own:
        rows.insert(connection, "limits", name=name, **{limit: int(code != "limit_zero")})
    own = {limit: 1} if is_own else {}
    rows.insert_definition(
        connection, "tied", kind="command", spec='{"argv": ["true"]}', limit_name=name, **own
    )
    limited = {"definition": "tied", "limit_name": name, "limit_key": ""}
    if code != "limit_zero":
        rows.insert_job(connection, JobState.RUNNING, worker_id=7, **limited)
    job_id = rows.insert_job(connection, JobState.QUEUED, waits_for="limit", **limited)

    assert run_fix(each_command, job_id) == (code, "soon")


def test_the_fix_of_a_tenant_at_its_cap_works(each_command, connection):
    worker(connection)
    connection.execute("update mainspring.tenants set max_running = 1")
    limited = {"definition": "hello", "limit_name": "", "limit_key": ""}
    rows.insert_job(connection, JobState.RUNNING, worker_id=7, **limited)
    job_id = rows.insert_job(connection, JobState.QUEUED, waits_for="limit", **limited)

    assert run_fix(each_command, job_id) == ("tenant_cap", "soon")


def test_the_fix_of_a_queue_that_nobody_serves_works(command, start, database_url, connection):
    job_id = rows.insert_job(connection, JobState.QUEUED, definition="hello", queue="mail")
    fix = json.loads(command("why", str(job_id), "--json").stdout)["reasons"][0]["fix"]
    program, *words = shlex.split(fix)

    process = start(*words, MAINSPRING_DATABASE_URL=database_url)
    process.started(connection)

    assert program == "mainspring"
    after = json.loads(command("why", str(job_id), "--json").stdout)["reasons"][0]["code"]
    assert after != "nobody_serves"
