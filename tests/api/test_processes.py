"""/processes and /status: who is alive, and what waits."""

from datetime import UTC, datetime

import psycopg
import pytest

from mainspring.domain.access.roles import Role
from mainspring.domain.types import JobState
from tests.support import rows
from tests.support.api import Api

MINUTE = "now() + interval '1 minute'"


@pytest.fixture
def processes(connection: psycopg.Connection) -> None:
    """A leading scheduler, a silent one, a server and a worker of everyone."""
    columns = "process_id, kind, name, expires_at, facts, host, pid, identity, version"
    connection.execute(
        f"insert into mainspring.processes ({columns}, schema_number, clock_offset_ms) values"
        f" (4, 'server', 'box:4', {MINUTE}, '{{\"address\": \"box:80\"}}', 'box', 4, '', '1', 20,"
        " 7),"
        f" (3, 'scheduler', 'box:3', {MINUTE}, '{{\"leads\": true, \"checked_at\":"
        " \"2026-01-01T00:00:00+00:00\"}', 'box', 3, '', '1', 20, null),"
        " (2, 'scheduler', 'box:2', now(), '{\"leads\": true}', 'box', 2, '', '1', 20, null)"
    )
    connection.execute(
        "insert into mainspring.workers (worker_id, name, host, pid, queues, concurrency, version,"
        f" process_identity, expires_at) values (1, 'box:1', 'box', 1, '{{mail}}', 9, '1', 'a',"
        f" {MINUTE})"
    )


@pytest.mark.usefixtures("processes")
async def test_an_operator_sees_every_process_with_what_it_does(api: Api):
    found = (await api.get("/processes")).json()["items"]

    assert [(each["kind"], each["name"], each["is_alive"]) for each in found] == [
        ("server", "box:4", True),
        ("scheduler", "box:3", True),
        ("scheduler", "box:2", False),
        ("worker", "box:1", True),
    ]
    server, leader, _, worker = found
    assert (server["address"], server["clock_offset_ms"], server["pid"]) == ("box:80", 7, 4)
    assert (leader["leads"], leader["checked_at"]) == (True, "2026-01-01T00:00:00Z")
    assert (worker["queues"], worker["concurrency"], worker["running"]) == (["mail"], 9, 0)


@pytest.mark.usefixtures("processes")
async def test_an_admin_sees_neither_hosts_nor_pids_nor_addresses(api: Api, connection):
    connection.execute(
        "insert into mainspring.definitions (key, kind, queue) values ('send', 'python', 'mail')"
    )

    answer = await api.get("/processes", role=Role.ADMIN)

    assert [(each["name"], each["leads"]) for each in answer.json()["items"]] == [
        ("server 4", None),
        ("scheduler 3", True),
        ("scheduler 2", True),
        ("worker 1", None),
    ]
    assert "box" not in answer.text


@pytest.mark.usefixtures("processes")
async def test_processes_are_filtered_and_paged(api: Api):
    first = (await api.get("/processes?kind=scheduler&limit=1")).json()
    second = (await api.get(f"/processes?kind=scheduler&cursor={first['next_cursor']}")).json()
    wrong = await api.get("/processes?kind=gardener")

    assert [each["id"] for each in (*first["items"], *second["items"])] == ["3", "2"]
    assert wrong.status_code == 422


async def test_a_worker_that_goes_on_under_a_new_id_is_listed_once(api: Api, connection):
    connection.execute(
        "insert into mainspring.workers (worker_id, name, host, pid, queues, concurrency, version,"
        " process_identity, expires_at)"
        f" select number, 'w', 'h', 1, '{{q}}', 1, '1', identity, {MINUTE} - interval '2 minutes'"
        "         + (number = 3)::int * interval '2 minutes'"
        "   from (values (1, 'a'), (2, 'b'), (3, 'a')) as given (number, identity)"
    )

    found = (await api.get("/processes")).json()["items"]

    assert [(each["id"], each["is_alive"]) for each in found] == [("3", True), ("2", False)]


@pytest.mark.usefixtures("processes")
async def test_the_status_says_who_leads_and_what_has_waited_for_longest(api: Api, connection):
    old = datetime(2026, 1, 1, tzinfo=UTC)
    for queue, at in (("a", old), ("b", old.replace(hour=2)), ("b", old.replace(hour=1))):
        rows.insert_job(
            connection,
            *(JobState.QUEUED,),
            definition="hello",
            queue=queue,
            scheduled_for=at,
            priority=at.hour,
        )
    connection.execute(
        "insert into mainspring.events (tenant_id, name, context, emitted_at, handled_at) values"
        " ('default', 'n', '{}', '2026-01-01Z', now()),"
        " ('default', 'n', '{}', '2026-01-02Z', null),"
        " ('acme', 'n', '{}', '2026-01-03Z', null)"
    )

    found = (await api.get("/status")).json()

    assert found["leader"]["name"] == "box:3"
    assert found["oldest_event_at"] == "2026-01-02T00:00:00Z"
    assert found["queues"] == [
        {"name": "a", "oldest_ready_at": "2026-01-01T00:00:00Z"},
        {"name": "b", "oldest_ready_at": "2026-01-01T01:00:00Z"},
    ]
    assert found["database_version"].startswith(("15", "16", "17", "18"))
    assert found["schema_number"] > 0


async def test_nothing_waits_in_an_empty_database(api: Api):
    found = (await api.get("/status")).json()

    assert (found["leader"], found["oldest_event_at"], found["queues"]) == (None, None, [])
