"""Payloads of schedules: held to the JSON Schema when one is saved, and again when it fires."""

import json
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from mainspring import Launcher, Mainspring
from mainspring.domain.errors import InvalidPayload
from tests.support import schedules
from tests.support.schedules import scheduling
from tests.support.waiting import await_until

SCHEMA = {
    "type": "object",
    "properties": {"days": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["days"],
    "additionalProperties": False,
}
WRONG = [{}, {"days": "many"}, {"days": 1, "more": 1}, {"dyas": "{{slot_at}}"}]
RIGHT = [{"days": 1}, {"days": "{{missed}}"}, {"days": 1, "note": "of {{slot_at|date}}"}]


@pytest.fixture
async def app(app: Mainspring):
    @app.job(key="work")
    async def work(days: int, note: str = "") -> None: ...

    await app.aregister_definitions()
    return app


def redefine(connection: psycopg.Connection, schema: dict[str, object] | None) -> None:
    connection.execute(
        "update mainspring.definitions set arg_schema = %s::text::jsonb where key = 'work'",
        (json.dumps(schema) if schema else None,),
    )


@pytest.mark.parametrize("payload", WRONG)
async def test_a_wrong_payload_is_refused_when_a_schedule_is_created(app, database_url, payload):
    async with Mainspring(database_url) as other:  # Which has no handler to look at.
        with pytest.raises(InvalidPayload, match=r"^payload"):
            await other.schedules.acreate("tick", "work", every=timedelta(hours=1), payload=payload)


@pytest.mark.parametrize("payload", RIGHT)
async def test_a_right_payload_or_template_is_stored(app, payload):
    state = await app.schedules.acreate("tick", "work", every=timedelta(hours=1), payload=payload)

    assert state.spec.payload == payload


async def test_a_change_is_checked_and_other_changes_are_not_held_up(app, connection):
    await app.schedules.acreate("tick", "work", every=timedelta(hours=1), payload={"days": 1})

    with pytest.raises(InvalidPayload, match="days"):
        await app.schedules.aupdate("tick", payload={"days": None})
    redefine(connection, {"type": "object", "required": ["weeks"]})
    state = await app.schedules.aupdate("tick", every=timedelta(hours=2))
    assert state.spec.every == timedelta(hours=2)


@pytest.mark.parametrize("payload", WRONG)
def test_plain_sql_is_refused_too(app, connection, payload):
    with pytest.raises(
        psycopg.Error, match=r"payload.*it must fit the JSON Schema of the"
    ) as error:
        schedules.insert_schedule(connection, payload=payload)

    assert error.value.sqlstate == "MS001"


@pytest.mark.parametrize("payload", RIGHT)
def test_plain_sql_may_write_what_fits(app, connection, payload):
    schedules.insert_schedule(connection, payload=payload)


def test_a_schedule_may_come_before_its_definition(connection, app):
    connection.execute(
        "insert into mainspring.schedules (name, definition, every, payload)"
        """ values ('early', 'unknown', '1 hour', '{"any": 1}')"""
    )


def test_a_declared_payload_is_refused_with_the_name_of_its_schedule(app):
    declare = app.schedule(every=timedelta(hours=1), name="tick", payload={"days": "many"})

    with pytest.raises(InvalidPayload, match=r"^payload/days: .* \(schedule 'tick'\)$"):
        declare(app.functions["work"])


async def test_the_payload_of_a_launcher_is_not_asked_for_when_it_is_saved(app, connection):
    class Daily(Launcher):
        async def should_run(self) -> bool:
            return True

        async def prepare_job_data(self) -> dict[str, object]:
            return {"days": "many"}

    app.register_launcher("daily", Daily)
    schedules.insert_due(connection, launcher="daily")
    async with scheduling(app):
        slot = await await_until(lambda: schedules.decided(connection))

    assert slot["outcome"] == "failed"
    assert slot["reason"].startswith("payload/days: ")


@pytest.mark.parametrize("payload", [{"days": 1}, {"days": "{{missed}}"}])
async def test_a_slot_fails_with_the_reason_if_the_definition_asks_for_more(
    app, connection, payload
):
    schedules.insert_due(connection, payload=payload)
    redefine(connection, {**SCHEMA, "required": ["days", "note"]})

    async with scheduling(app):
        slot = await await_until(lambda: schedules.decided(connection))

    assert slot["outcome"] == "failed"
    assert "note" in slot["reason"]
    assert connection.execute("select count(*) from mainspring.jobs").fetchone() == (0,)


async def test_a_schedule_that_still_fits_fires_and_is_plain_again(app, connection):
    schedules.insert_due(connection, payload={"days": 1})
    redefine(connection, {**SCHEMA, "description": "Changed."})
    assert not is_known_to_fit(connection)

    async with scheduling(app):
        slot = await await_until(lambda: schedules.decided(connection))

    assert slot["outcome"] == "enqueued"
    assert is_known_to_fit(connection)


async def test_a_schema_that_only_a_program_knows_is_checked_before_the_first_slot(app, connection):
    redefine(connection, {**SCHEMA, "minProperties": 2})
    schedules.insert_due(connection, payload={"days": 1})

    async with scheduling(app):
        slot = await await_until(lambda: schedules.decided(connection))

    assert slot["outcome"] == "failed"
    assert "minProperties" in slot["reason"]


def test_what_sql_has_checked_is_fired_as_a_set(app, connection):
    schedules.insert_schedule(connection, payload={"days": 1})

    assert is_known_to_fit(connection)


async def test_a_trigger_by_hand_waits_for_a_look_if_the_definition_has_changed(app, connection):
    schedules.insert_schedule(connection, payload={"days": 1})
    redefine(connection, {**SCHEMA, "required": ["days", "note"]})

    triggered = await app.schedules.atrigger("tick")
    async with scheduling(app):
        slot = await await_until(lambda: schedules.decided(connection))

    assert triggered.outcome == "pending"
    assert slot["outcome"] == "failed"
    assert "note" in slot["reason"]


@pytest.mark.parametrize("payload", [{"days": 1}, {"days": "{{missed}}"}])
async def test_a_backfill_is_refused(app, connection, payload):
    schedules.insert_schedule(connection, payload=payload)
    redefine(connection, {**SCHEMA, "required": ["days", "note"]})
    end = datetime.now(UTC)

    with pytest.raises(InvalidPayload, match="note"):
        await app.schedules.abackfill("tick", end - timedelta(hours=3), end)


def is_known_to_fit(connection: psycopg.Connection) -> bool:
    ((fits,),) = connection.execute(
        "select clock.schema_key = d.schema_key from mainspring.clocks as clock"
        " join mainspring.definitions as d on d.key = clock.definition"
    ).fetchall()
    return bool(fits)
