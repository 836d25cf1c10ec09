"""Payloads with secrets, encrypted from the enqueue to the handler, schedules included."""

from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from mainspring import JobState, Launcher, Mainspring
from mainspring.services.secrets import generate_key
from mainspring.settings import load
from tests.support.hidden_words import WORD, ensure_hidden, read_all
from tests.support.secret_schemas import MARKED, of
from tests.support.waiting import await_until
from tests.support.workers import ended, working

HEARD: list[str] = []
KEY = generate_key()


@pytest.fixture
async def own(database_url: str) -> AsyncIterator[Mainspring]:
    """An app with a key, whose job `login` has a secret and notes what it got."""
    settings = load(database_url=database_url, encryption_keys=KEY)
    async with Mainspring(settings=settings) as app:
        HEARD.clear()

        @app.job(key="login", arg_schema=of(word=MARKED), max_attempts=2)
        async def login(word: str) -> None:
            HEARD.append(word)

        yield app


async def test_a_worker_without_the_key_fails_the_attempt_and_leaves_it_to_another(own):
    async with working(own, encryption_keys=generate_key()):
        handle = await own.aenqueue("login", {"word": WORD})

        async def has_failed() -> Any:
            job = await handle.ajob()
            return job if job.failures else None

        job = await await_until(has_failed)

    assert job.state is JobState.QUEUED
    assert "payload.word is encrypted with the key" in (job.last_error or "")
    assert HEARD == []


async def test_a_value_that_was_changed_fails_for_good(own, connection):
    handle = await own.aenqueue("login", {"word": WORD})
    connection.execute(
        "update mainspring.jobs set payload = jsonb_set(payload, '{word,value}', '\"AAAA\"')"
    )
    async with working(own, encryption_keys=KEY):
        job = await ended(handle)

    assert job.state is JobState.FAILED
    assert job.last_error == (
        "payload.word was changed, or moved from another field, definition or tenant"
    )


async def test_a_handler_that_marks_nothing_any_more_still_gets_the_real_value(own):
    handle = await own.aenqueue("login", {"word": WORD})
    got = []

    async with Mainspring(own.database.url) as later:

        @later.job(key="login")
        async def login(word: str) -> str:
            got.append(word)
            return word

        async with working(later, encryption_keys=KEY):
            job = await ended(handle)

    assert got == [WORD]
    assert job.result == "[redacted]"


async def test_a_payload_by_plain_sql_is_hidden_without_being_encrypted(own, connection):
    await own.aregister_definitions()
    connection.execute(
        "select mainspring.enqueue('login', jsonb_build_object('word', %s::text))", (WORD,)
    )
    async with working(own, encryption_keys=KEY):
        await await_until(lambda: HEARD)

    assert HEARD == [WORD]
    ensure_hidden(read_all(connection))


async def test_an_error_shows_no_token_even_where_nothing_is_marked(own):
    @own.job(key="connect", max_attempts=1)
    async def connect() -> None:
        raise OSError("no answer from postgres://ada:hunter2@db")

    async with working(own):
        job = await ended(await own.aenqueue("connect", {}))

    assert "postgres://ada:[redacted]@db" in (job.last_error or "")
    assert "hunter2" not in (job.last_error or "")


async def test_a_result_without_marked_secrets_stays_as_it_is(own):
    @own.job(key="connect")
    async def connect() -> str:
        return "password=hunter2"

    async with working(own):
        job = await ended(await own.aenqueue("connect", {}))

    assert job.result == "password=hunter2"


# Schedules


def enqueued(connection: psycopg.Connection) -> Any:
    """The payload of a live job as it is stored."""
    return connection.execute("select payload from mainspring.jobs").fetchone()


class TellsAll(Launcher):
    """Reads the real payload of its schedule, and fails or goes on."""

    got: list[Any] = []  # noqa: RUF012 - read back by the test

    def check_conditions(self) -> bool:
        self.got.append(dict(self.schedule.payload))
        if self.schedule.name == "fails":
            raise ValueError(f"cannot use {self.schedule.payload['word']}")
        return True

    def prepare_job_data(self) -> dict[str, Any]:
        return {"word": self.schedule.payload["word"] + "!"}


async def test_a_launcher_has_the_secret_and_its_failure_hides_it(own, connection):
    TellsAll.got.clear()
    own.register_launcher("tells_all", TellsAll)
    await own.schedules.acreate(
        "fails", "login", cron="@daily", payload={"word": WORD}, launcher="tells_all"
    )
    async with own.schedules.running():
        await own.schedules.atrigger("fails")

        def has_failed() -> bool:
            found = connection.execute("select from mainspring.slots where outcome = 'failed'")
            return found.fetchone() is not None

        await await_until(has_failed)

    assert TellsAll.got == [{"word": WORD}]
    ensure_hidden(read_all(connection))
    assert "cannot use [redacted]" in read_all(connection)


async def test_what_a_launcher_makes_is_encrypted_with_the_job(own, connection):
    own.register_launcher("tells_all", TellsAll)
    await own.schedules.acreate(
        "works", "login", cron="@daily", payload={"word": WORD}, launcher="tells_all"
    )
    async with own.schedules.running():
        await own.schedules.atrigger("works")
        (stored,) = await await_until(lambda: enqueued(connection))
    async with working(own, encryption_keys=KEY):
        await await_until(lambda: HEARD)

    assert stored["word"]["$mainspring"] == "encrypted"
    assert [f"{WORD}!"] == HEARD


async def test_a_template_is_rendered_before_it_is_encrypted(own, connection):
    payload = {"word": "for {{schedule}} only"}
    await own.schedules.acreate("daily", "login", cron="@daily", payload=payload)
    async with own.schedules.running():
        await own.schedules.atrigger("daily")
        (stored,) = await await_until(lambda: enqueued(connection))
    async with working(own, encryption_keys=KEY):
        await await_until(lambda: HEARD)

    assert stored["word"]["$mainspring"] == "encrypted"
    assert HEARD == ["for daily only"]
