"""`mainspring status` and `mainspring health` as a person and as cron meet them."""

import json
from pathlib import Path

import psycopg
import pytest

from tests.support.commands import Done, facts, on_terminal
from tests.support.schedules import scheduler_processes
from tests.support.waiting import wait_until

LEASE = 2
ALIVE = "now() + interval '1 minute'"


def insert(connection: psycopg.Connection, kind: str, *, expires_at: str = ALIVE) -> None:
    values = f"'{kind}', 'box:1', 'box', 1, '', '1.0', 20, 1234, {expires_at}"
    connection.execute(
        "insert into mainspring.processes (kind, name, host, pid, identity, version, schema_number,"
        f" clock_offset_ms, expires_at) values ({values})"
    )


def insert_worker(connection: psycopg.Connection, *, expires_at: str = ALIVE) -> None:
    connection.execute(
        "insert into mainspring.workers (name, host, pid, queues, concurrency, version,"
        f" process_identity, expires_at) values ('box:2', 'box', 2, '{{mail}}', 9, '1', '',"
        f" {expires_at})"
    )


def process_rows(done: Done) -> list[list[str]]:
    """The fields of each process that `status` has written into a pipe."""
    listed, _, _ = done.stdout.partition("\n\n")
    return [line.split("\t") for line in listed.splitlines()[1:]]


def test_a_killed_scheduler_is_silent_within_a_lease(
    command, database_url: str, connection: psycopg.Connection, tmp_path: Path
):
    leads = "select facts -> 'leads' from mainspring.processes"
    with scheduler_processes(database_url, tmp_path) as start:
        scheduler = start(lease_seconds=LEASE)
        scheduler.started()
        wait_until(lambda: connection.execute(leads).fetchone() == (True,), 20, "it leads")
        alive = process_rows(command("status"))[0]
        healthy = command("health", "--kind", "scheduler")
        scheduler.kill()
        died = connection.execute("select clock_timestamp()").fetchone()

        silent = "select clock_timestamp() from mainspring.processes where expires_at <= now()"
        seen = wait_until(lambda: connection.execute(silent).fetchone(), 20, "it is silent")

    assert (alive[0], alive[2], alive[4]) == ("scheduler", "alive", "leads")
    assert healthy.returncode == 0
    assert died is not None
    assert seen is not None
    assert (seen[0] - died[0]).total_seconds() < LEASE + 1
    shown = command("status")
    (silent_row,) = process_rows(shown)
    assert (silent_row[0], silent_row[2]) == ("scheduler", "silent")
    assert "nobody leads" in shown.stdout
    unhealthy = command("health", "--kind", "scheduler")
    assert unhealthy.returncode == 1
    assert unhealthy.stdout.startswith("no scheduler is alive; the last sign of life was ")


def test_health_needs_a_worker_and_a_scheduler_and_whatever_was_there(each_command, connection):
    (nothing,) = each_command(["health"])
    insert_worker(connection)
    insert(connection, "scheduler")
    (both,) = each_command(["health"])
    insert(connection, "server", expires_at="now()")
    no_server, worker = each_command(["health", "--json"], ["health", "--kind", "worker"])

    assert nothing.returncode == 1
    assert nothing.stdout.splitlines() == [
        "no worker is known; start one with `mainspring worker`",
        "no scheduler is known; start one with `mainspring scheduler`",
    ]
    assert (both.returncode, both.stdout) == (0, "ok\n")
    assert no_server.returncode == 1
    said = json.loads(no_server.stdout)
    assert said["status"] == "failing"
    assert said["reasons"][0].startswith("no server is alive")
    assert worker.returncode == 0


def test_health_without_a_database_says_so(command):
    done = command("health", MAINSPRING_DATABASE_URL="postgresql://127.0.0.1:1/none")

    assert done.returncode == 2
    assert "127.0.0.1" in done.stderr


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_the_table_fits_a_terminal(database_url, connection, columns):
    insert_worker(connection)
    insert(connection, "server")

    shown = on_terminal(
        "status", columns=columns, environment={"MAINSPRING_DATABASE_URL": database_url}
    ).stdout

    assert max(map(len, shown.splitlines())) <= columns
    assert shown.split()[:3] == ["KIND", "NAME", "STATE"]
    assert "scheduling" in shown
    assert "PostgreSQL" in shown


def test_a_pipe_and_json_get_everything(each_command, connection):
    insert_worker(connection)
    piped, as_json = each_command(["status"], ["status", "--json"])

    (row,) = process_rows(piped)
    assert [row[0], row[1], row[2], row[4]] == ["worker", "box:2", "alive", "0 of 9, mail"]
    found = facts(as_json)
    assert [each["name"] for each in found["processes"]] == ["box:2"]
    assert found["status"]["leader"] is None


def test_an_admin_of_a_tenant_sees_processes_without_what_waits(server_command, connection):
    insert(connection, "scheduler")

    done = server_command("status", role="admin")

    assert done.returncode == 0
    assert "box" not in done.stdout
    assert "only operators see what waits" in done.stderr
