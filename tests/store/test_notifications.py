"""Busy workers are told of a lane that looked empty, and of nothing else."""

import json
from collections.abc import Callable, Iterator

import psycopg
import pytest

from mainspring import Mainspring
from tests.support.rows import insert, insert_definition, insert_tenant

Heard = Callable[[], list[str]]


@pytest.fixture
def ready(connection: psycopg.Connection) -> psycopg.Connection:
    insert_definition(connection, "work")
    insert_tenant(connection, "acme")
    connection.execute("update mainspring.tenants set weight = 7 where tenant_id = 'acme'")
    return connection


@pytest.fixture
def heard(ready: psycopg.Connection, database_url: str) -> Iterator[Heard]:
    """What was sent since the last call."""
    with psycopg.connect(database_url, autocommit=True) as listener:
        listener.execute("listen mainspring")
        yield lambda: list(_until_end(listener))


def _until_end(listener: psycopg.Connection) -> Iterator[str]:
    listener.execute("notify mainspring, 'end'")
    for notify in listener.notifies(timeout=10):
        if notify.payload == "end":
            return
        yield notify.payload


def insert_worker(connection: psycopg.Connection, *, wants_wake: bool, queue: str = "default"):
    insert(
        connection,
        "workers",
        expires_at="infinity",
        pid=1,
        concurrency=1,
        wants_wake=wants_wake,
        name="w",
        host="h",
        process_identity="p",
        queues=[queue],
        version="test",
    )


def news(message: str) -> list[object]:
    kind, _, text = message.partition(":")
    assert kind == "lane"
    facts: list[object] = json.loads(text)
    return facts


SINGLE = "select mainspring.enqueue('work', tenant => 'acme')"
WITH_KEY = "select mainspring.enqueue('work', tenant => 'acme', idempotency_key => '{}')"
MANY = "select min(m) from mainspring.enqueue_many('work', array['{}', '{}']::jsonb[], 'acme') as m"


@pytest.mark.parametrize("statement", [SINGLE, WITH_KEY, MANY])
def test_a_busy_worker_is_told_of_a_new_lane_with_its_weight(ready, heard, statement):
    insert_worker(ready, wants_wake=False)

    ((job_id,),) = ready.execute(statement).fetchall()

    (message,) = heard()
    queue, priority, tenant, first, weight = news(message)
    assert (queue, priority, tenant, weight) == ("default", 100, "acme", 7)
    assert isinstance(first, int)
    assert job_id - 1 <= first <= job_id


def test_it_is_told_of_a_bulk_enqueue_and_of_a_plain_one(ready, heard, database_url):
    insert_worker(ready, wants_wake=False)
    with Mainspring(database_url) as app:
        job_ids = app.enqueue_many("work", [{}] * 3, tenant_id="acme")
        plain = app.enqueue("work", {})

    first, second = map(news, heard())
    assert first == ["default", 100, "acme", job_ids[0], 7]
    assert second == ["default", 100, "default", plain.id, 1]


def test_it_is_not_told_again_while_the_lane_has_work(ready, heard):
    insert_worker(ready, wants_wake=False)
    ready.execute(SINGLE)
    assert len(heard()) == 1

    for _ in range(3):
        ready.execute(SINGLE)
    assert heard() == []


def test_it_is_told_again_when_the_lane_has_been_emptied(ready, heard):
    insert_worker(ready, wants_wake=False)
    ready.execute(SINGLE)
    ready.execute("delete from mainspring.jobs")
    ready.execute(SINGLE)

    assert len(heard()) == 2


@pytest.mark.parametrize(("behind", "messages"), [(1000, 0), (1001, 1)])
def test_only_the_last_thousand_ids_are_looked_at(ready, heard, behind, messages):
    insert_worker(ready, wants_wake=False)
    ready.execute("alter sequence mainspring.job_ids restart with 5000")
    insert(ready, "jobs", job_id=5000 - behind, tenant_id="acme", definition="work")
    ready.execute(SINGLE)

    assert len(heard()) == messages


@pytest.mark.parametrize("statement", [SINGLE, WITH_KEY, MANY])
def test_a_job_of_another_priority_is_another_lane(ready, heard, statement):
    insert_worker(ready, wants_wake=False)
    insert(ready, "jobs", tenant_id="acme", definition="work", priority=5)
    ready.execute(statement)

    assert len(heard()) == 1


def test_an_idle_worker_is_woken_instead(ready, heard):
    insert_worker(ready, wants_wake=False)
    insert_worker(ready, wants_wake=True)
    ready.execute(SINGLE)

    assert heard() == ["ready:default"]


@pytest.mark.parametrize("statement", [SINGLE, WITH_KEY, MANY])
def test_nothing_is_sent_if_nobody_serves_the_queue(ready, heard, statement):
    insert_worker(ready, wants_wake=False, queue="elsewhere")
    ready.execute(statement)

    assert heard() == []


@pytest.mark.parametrize("options", ["", ", idempotency_key => 'k'"])
def test_nothing_is_sent_of_what_is_not_ready(ready, heard, options):
    insert_worker(ready, wants_wake=False)
    ready.execute(f"select mainspring.enqueue('work', tenant => 'acme', delay => '1 h'{options})")

    assert heard() == []


def test_the_longest_names_are_told(ready, heard):
    insert_worker(ready, wants_wake=False, queue="q" * 500)
    insert_tenant(ready, "t" * 200)
    ready.execute(
        "select mainspring.enqueue('work', queue => repeat('q', 500), tenant => repeat('t', 200))"
    )

    assert len(heard()) == 1
