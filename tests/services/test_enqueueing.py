"""The one way in: what each interface refuses, encrypts and suggests is the same for all."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.db import plans
from mainspring.db.plans import Statement
from mainspring.domain.errors import InvalidPayload, UnknownDefinition
from mainspring.domain.secrets.paths import is_encrypted
from mainspring.runtime.dispatcher.batches import RoundRobin
from mainspring.services.enqueueing import Enqueuer
from mainspring.services.secrets import generate_key
from mainspring.settings import load
from tests.support.secret_schemas import MARKED, of

SCHEMA = of(user={"type": "string"}, word=MARKED)
SECRET = {"user": "ada", "word": "hunter2"}
Enqueue = Callable[[Mainspring, str, dict[str, Any]], Awaitable[object]]


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Mainspring]:
    settings = load(database_url=database_url, encryption_keys=generate_key())
    async with Mainspring(settings=settings) as app:

        @app.job(key="login", arg_schema=SCHEMA)
        async def login(**payload: object) -> None: ...

        await app.aregister_definitions()
        yield app


async def one(app: Mainspring, key: str, payload: dict[str, Any]) -> object:
    return app.enqueue(key, payload)


async def aone(app: Mainspring, key: str, payload: dict[str, Any]) -> object:
    return await app.aenqueue(key, payload)


async def one_with_options(app: Mainspring, key: str, payload: dict[str, Any]) -> object:
    return app.enqueue(key, payload, priority=1, dedupe_by="content")


async def one_in_a_transaction(app: Mainspring, key: str, payload: dict[str, Any]) -> object:
    with psycopg.connect(app.database.url) as own:
        return app.enqueue(key, payload, connection=own)


async def many(app: Mainspring, key: str, payload: dict[str, Any]) -> object:
    return app.enqueue_many(key, [payload])


async def amany(app: Mainspring, key: str, payload: dict[str, Any]) -> object:
    return await app.aenqueue_many(key, [payload])


async def many_by_copy(app: Mainspring, key: str, payload: dict[str, Any]) -> object:
    return app.enqueue_many(key, [payload] * 300)


async def amany_by_copy(app: Mainspring, key: str, payload: dict[str, Any]) -> object:
    return await app.aenqueue_many(key, [payload] * 300)


async def flow(app: Mainspring, key: str, payload: dict[str, Any]) -> object:
    made = app.flow("f")
    made.add(key, payload)
    return made.enqueue()


async def aflow(app: Mainspring, key: str, payload: dict[str, Any]) -> object:
    made = app.flow("f")
    made.add(key, payload)
    return await made.aenqueue()


async def flow_in_a_transaction(app: Mainspring, key: str, payload: dict[str, Any]) -> object:
    made = app.flow("f")
    made.add(key, payload)
    with psycopg.connect(app.database.url) as own:
        return made.enqueue(connection=own)


async def without_handlers(app: Mainspring, key: str, payload: dict[str, Any]) -> object:
    """As the server enqueues, which has no code of its own."""
    return await plans.arun(Enqueuer(app.settings).enqueue(key, payload), app.database)


WAYS = [
    *(one, aone, one_with_options, one_in_a_transaction, many, amany, many_by_copy, amany_by_copy),
    *(flow, aflow, flow_in_a_transaction, without_handlers),
]
every_way = pytest.mark.parametrize("enqueue", WAYS)


def stored(connection: psycopg.Connection) -> list[dict[str, Any]]:
    rows = connection.execute("select payload from mainspring.jobs").fetchall()
    return [payload for (payload,) in rows]


@every_way
async def test_secrets_are_encrypted(app, enqueue: Enqueue, connection):
    await enqueue(app, "login", SECRET)

    payloads = stored(connection)
    assert payloads
    assert all(each["user"] == "ada" and is_encrypted(each["word"]) for each in payloads)


@every_way
async def test_a_payload_that_does_not_fit_the_schema_is_refused(app, enqueue: Enqueue, connection):
    with pytest.raises(InvalidPayload, match="payload/user"):
        await enqueue(app, "login", {**SECRET, "user": 7})
    assert stored(connection) == []


@every_way
async def test_a_payload_copied_from_where_it_is_shown_is_refused(
    app, enqueue: Enqueue, connection
):
    with pytest.raises(InvalidPayload, match=r"word is \[redacted\]"):
        await enqueue(app, "login", {**SECRET, "word": "[redacted]"})
    assert stored(connection) == []


@every_way
async def test_an_unknown_definition_is_named_with_what_may_have_been_meant(app, enqueue: Enqueue):
    with pytest.raises(UnknownDefinition, match=r"'logn'; did you mean 'login'") as caught:
        await enqueue(app, "logn", SECRET)
    assert caught.value.suggestion == "login"


@every_way
async def test_a_definition_of_another_program_is_suggested_too(app, enqueue: Enqueue, connection):
    connection.execute(
        "insert into mainspring.definitions (key, kind) values ('elsewhere', 'python')"
    )
    connection.commit()

    with pytest.raises(UnknownDefinition, match=r"'elswhere'; did you mean 'elsewhere'"):
        await enqueue(app, "elswhere", {})


def test_a_plain_enqueue_is_one_statement(app):
    plan = Enqueuer(app.settings).enqueue("send", {"n": 1})

    schema = next(plan)
    assert isinstance(schema, Statement)
    sent = plan.send([])
    assert isinstance(sent, Statement)
    assert sent.call.params == {"definition": "send", "payload": '{"n":1}'}
    with pytest.raises(StopIteration) as done:
        plan.send([(7, True)])
    assert done.value.value == (7, True, None)


@pytest.mark.parametrize("payload", [{"day": object()}, [], {"n": "\0"}])
def test_what_is_no_payload_is_refused_before_the_database_is_asked(app, payload):
    for plan in (
        Enqueuer(app.settings).enqueue("send", payload),
        Enqueuer(app.settings).enqueue_many("send", [payload]),
    ):
        with pytest.raises(InvalidPayload):
            next(plan)


async def test_an_event_makes_a_job_with_encrypted_secrets(app, aconnection, connection):
    await app.triggers.acreate(
        "enter", event="came", definition="login", payload={"user": "{{event.user}}", "word": "w1"}
    )
    await app.aemit("came", {"user": "ada"})
    await app.aemit("came", {"user": 7})
    await RoundRobin(app.settings).dispatch(aconnection)

    (payload,) = stored(connection)
    assert (payload["user"], is_encrypted(payload["word"])) == ("ada", True)
    events = await app.events.alist()
    (error,) = [each.error for event in events for each in event.dispatches if each.error]
    assert "payload/user" in error


async def test_a_flow_may_use_a_definition_that_only_its_transaction_sees(app):
    made = app.flow("f")
    made.add("new", {})
    with psycopg.connect(app.database.url) as own:
        own.execute("insert into mainspring.definitions (key, kind) values ('new', 'python')")
        assert made.enqueue(connection=own).id
