"""`mainspring workers`, `queues`, `audit` and `jobs stats` as a person meets them."""

import json

import psycopg
import pytest
from rich.text import Text

from mainspring.api.models.workers import WorkerModel
from mainspring.cli.workers import WORKERS
from mainspring.domain.types import JobState
from tests.support import rows
from tests.support.commands import sentence, table


@pytest.fixture
def busy(connection: psycopg.Connection, database_url: str) -> None:
    """One worker that runs a job, one that fell silent, and jobs that wait."""
    columns = "name, host, pid, queues, concurrency, version, process_identity, expires_at"
    connection.execute(
        f"insert into mainspring.workers (worker_id, {columns}) values"
        " (7, 'w-new', 'box', 71, '{default,mail}', 10, '1.0', 'a', now() + interval '1 minute'),"
        " (6, 'w-old', 'box', 61, '{default}', 10, '0.9', 'b', now() - interval '1 minute')"
    )
    rows.insert_job(connection, JobState.RUNNING, worker_id=7, definition="hello")
    rows.insert_job(connection, JobState.QUEUED, definition="hello", queue="mail")
    rows.insert_job(connection, JobState.BLOCKED, definition="hello", queue="mail")


def styles(facts: str) -> list[str]:
    """How a terminal with colours would show the states."""
    cells = [WORKERS.cells(WorkerModel.model_validate(each)) for each in json.loads(facts)]
    return [str(cell.style) for row in cells for cell in row if isinstance(cell, Text)]


def test_one_job_waits_and_several_wait(command, connection):
    rows.insert_job(connection, JobState.QUEUED, definition="hello", waits_for="time")
    one = command("jobs", "stats").stderr
    rows.insert_job(connection, JobState.QUEUED, definition="hello", waits_for="time")
    several = command("jobs", "stats").stderr

    assert "1 queued job waits for a time" in one
    assert "2 queued jobs wait for a time" in several


@pytest.mark.usefixtures("busy")
def test_a_remote_worker_has_no_process_here(command, connection):
    connection.execute("update mainspring.workers set host = 'api', pid = 0 where worker_id = 7")

    remote, local = table(command("workers", "list"))

    assert (remote["HOST"], local["HOST"]) == ("remote", "box (pid 61)")


@pytest.mark.usefixtures("busy")
def test_workers_and_queues_are_listed(each_command):
    listed, facts, queues, stats = each_command(
        ["workers", "list"], ["workers", "list", "--json"], ["queues", "list"], ["jobs", "stats"]
    )

    new, old = table(listed)
    assert list(new.values())[:5] == ["7", "w-new", "alive", "default, mail", "1 of 10"]
    assert list(old.values())[1:3] == ["w-old", "stale"]
    assert [(each["name"], each["running"]) for each in json.loads(facts.stdout)] == [
        ("w-new", 1),
        ("w-old", 0),
    ]
    assert styles(facts.stdout) == ["green", "red"]
    default, mail = table(queues)
    assert list(default.values()) == ["default", "0", "0", "1", "0", "", ""]
    assert list(mail.values())[:5] == ["mail", "1", "0", "0", "1"]
    counted = {row["STATE"]: row["JOBS"] for row in table(stats)}
    assert {state: counted[state] for state in ("queued", "running", "blocked", "failed")} == {
        "queued": "1",
        "running": "1",
        "blocked": "1",
        "failed": "0",
    }
    assert "the oldest ready job became ready" in stats.stderr


def test_where_there_is_nothing_that_is_said(each_command):
    workers, queues = each_command(["workers", "list"], ["queues", "list"])

    assert workers.stderr == "No workers; start one with `mainspring worker`.\n"
    assert queues.stderr == "No queue holds live jobs.\n"


def test_the_audit_says_who_changed_what(each_command):
    *_, listed, facts, none = each_command(
        ["tenants", "create", "acme"],
        ["tenants", "update", "acme", "--weight", "3"],
        ["audit", "list", "--noun", "tenant", "--subject", "acme"],
        ["audit", "list", "--limit", "1", "--json"],
        ["audit", "list", "--actor", "nobody"],
    )

    changed, made = table(listed)
    assert list(changed.values())[2:] == ["update", "tenant acme", "acme", "weight 1 -> 3"]
    assert made["CHANGE"] == "zone UTC, weight 1, tenant_id acme"
    (newest,) = json.loads(facts.stdout)
    assert (newest["before"], newest["after"]) == ({"weight": 1}, {"weight": 3})
    assert none.stderr == "No changes.\n"


def test_a_member_is_told_who_sees_workers_and_the_audit(server_command):
    for noun in ("workers", "audit"):
        refused = server_command(noun, "list", role="member")
        assert sentence(refused) == (
            f"error: the role member may not read {noun}; it requires the role admin or operator"
        )
