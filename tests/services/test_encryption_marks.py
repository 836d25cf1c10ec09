"""The name that marks encrypted values is refused in whatever anybody sends."""

from collections.abc import Awaitable, Callable
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from mainspring import JobState, Mainspring
from mainspring.domain.errors import InputError, InvalidPayload
from tests.support.workers import ended, working

FAKE = {"$mainspring": "encrypted", "key": ["no", "text"], "value": 7}
MARKED: dict[str, Any] = {"deep": [{"in": FAKE}]}
PROBLEM = r"uses the name .\$mainspring., which is reserved for encrypted values"
# As one of ours, but for a key that is too short.
CLOSE = {"$mainspring": "encrypted", "key": "1f0c9a2", "nonce": "AAAA", "value": "AAAA"}
OURS = {**CLOSE, "key": "1f0c9a2e"}


@pytest.fixture
def app(app: Mainspring) -> Mainspring:
    @app.job(key="keep")
    async def keep(**payload: object) -> None: ...

    app.register_definitions()
    return app


async def _flow(app: Mainspring) -> None:
    flow = app.flow("f")
    flow.add("keep", MARKED)
    await flow.aenqueue()


async def _edit(app: Mainspring) -> None:
    handle = await app.aenqueue("keep", {})
    await app.jobs.acancel(handle.id)
    await app.jobs.aretry(handle.id, MARKED)


async def _edited_schedule(app: Mainspring) -> None:
    await app.schedules.acreate("s", "keep", cron="@daily")
    await app.schedules.aupdate("s", payload=MARKED)


PYTHON: dict[str, Callable[[Mainspring], Awaitable[Any]]] = {
    "enqueue": lambda app: app.aenqueue("keep", MARKED),
    "enqueue with a key": lambda app: app.aenqueue("keep", MARKED, idempotency_key="k"),
    "enqueue_many": lambda app: app.aenqueue_many("keep", [{}, MARKED]),
    "copy": lambda app: app.aenqueue_many("keep", [{}] * 300 + [MARKED]),
    "flow": _flow,
    "emit": lambda app: app.aemit("e", MARKED),
    "schedule": lambda app: app.schedules.acreate("s", "keep", cron="@daily", payload=MARKED),
    "edited schedule": _edited_schedule,
    "trigger": lambda app: app.triggers.acreate("t", event="e", definition="keep", payload=MARKED),
    "edited job": _edit,
}


@pytest.mark.parametrize("way", PYTHON)
async def test_python_refuses_it(app, way):
    with pytest.raises(InputError, match=PROBLEM):
        await PYTHON[way](app)


SQL = {
    "enqueue": "select mainspring.enqueue('keep', %s)",
    "enqueue with a key": "select mainspring.enqueue('keep', %s, idempotency_key => 'k')",
    "enqueue_many": "select mainspring.enqueue_many('keep', array['{}', %s::jsonb])",
    "enqueue_flow": "select mainspring.enqueue_flow('f', jsonb_build_array("
    "jsonb_build_object('definition', 'keep', 'payload', %s::jsonb)))",
    "emit": "select mainspring.emit('e', %s)",
    "schedules": "insert into mainspring.schedules (name, definition, cron, payload)"
    " values ('s', 'keep', '@daily', %s)",
    "triggers": "insert into mainspring.triggers (name, event, definition, payload)"
    " values ('t', 'e', 'keep', %s)",
}


@pytest.mark.parametrize("fake", [FAKE, CLOSE, {"$mainspring": 1}], ids=["fake", "close", "any"])
@pytest.mark.parametrize("way", SQL)
def test_sql_refuses_it(app, connection, way, fake):
    with pytest.raises(psycopg.Error, match=PROBLEM):
        connection.execute(SQL[way], [Jsonb({"deep": [{"in": fake}]})])


@pytest.mark.parametrize("way", ["emit", "triggers"])
def test_what_nobody_encrypts_may_not_even_look_so(app, connection, way):
    with pytest.raises(psycopg.Error, match=PROBLEM):
        connection.execute(SQL[way], [Jsonb({"word": OURS})])


@pytest.mark.parametrize(
    "payload",
    [{"a": "$mainspring"}, {"a": '{"$mainspring": "encrypted"}'}, {"mainspring": {"$main": 1}}],
)
async def test_a_text_may_say_it(app, connection, payload):
    await app.aenqueue("keep", payload)
    connection.execute("select mainspring.enqueue('keep', %s)", [Jsonb(payload)])

    stored = connection.execute("select payload from mainspring.jobs").fetchall()
    assert stored == [(payload,), (payload,)]


def test_an_event_that_renders_to_it_makes_no_job(app, connection):
    app.triggers.create("t", event="e", definition="keep", payload={"all": "{{event}}"})
    connection.execute(
        "insert into mainspring.events (tenant_id, name, context) values ('default', 'e', %s)",
        [Jsonb(MARKED)],
    )

    assert app.events.dispatch() == 1

    ((error,),) = connection.execute("select error from mainspring.dispatches").fetchall()
    assert "is reserved for encrypted values" in error


async def test_neither_a_result_nor_a_checkpoint_can_hold_it(database_url):
    async with Mainspring(database_url) as app:

        @app.job(key="answer", max_attempts=1)
        async def answer() -> object:
            return MARKED

        @app.job(key="save", max_attempts=1)
        async def save(ctx: Any) -> None:
            await ctx.acheckpoint(MARKED)

        async with working(app):
            jobs = [await ended(await app.aenqueue(key, {})) for key in ("answer", "save")]

    assert [job.state for job in jobs] == [JobState.FAILED, JobState.DEAD_LETTER]
    for job in jobs:
        assert "is reserved for encrypted values" in (job.last_error or "")


def test_the_error_says_what_to_do(app):
    with pytest.raises(InvalidPayload, match="; rename the field"):
        app.enqueue("keep", MARKED)
