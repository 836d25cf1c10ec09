"""Bad input: a typed error with a code and a sentence, and nothing half-written."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from mainspring import Mainspring, MainspringError
from mainspring.domain.errors import (
    DuplicateJob,
    IdempotencyConflict,
    InvalidOption,
    InvalidPayload,
    PayloadTooLarge,
    UnknownDefinition,
)
from mainspring.settings import load

NOW = datetime.now(UTC)
HOUR = timedelta(hours=1)
LIMIT = 1024 * 1024
# PostgreSQL writes a space after the colon, which counts as well.
FITS = "x" * (LIMIT - len('{"a": ""}'))

Wrong = tuple[str, Any, dict[str, Any], type[MainspringError], str]

WRONG: dict[str, Wrong] = {
    "a list": ("send", [1], {}, InvalidPayload, "must be a JSON object"),
    "text": ("send", "{}", {}, InvalidPayload, "must be a JSON object"),
    "a set": ("send", {"a": {1}}, {}, InvalidPayload, "the payload's 'a' is a set"),
    "a date": ("send", {"a": NOW}, {}, InvalidPayload, "the payload's 'a' is a datetime"),
    "a decimal": ("send", {"a": Decimal(1)}, {}, InvalidPayload, "'a' is a Decimal"),
    "bytes": ("send", {"a": b"x"}, {}, InvalidPayload, "the payload's 'a' is a bytes"),
    "a huge number": ("send", {"a": 2**70}, {}, InvalidPayload, "the payload's 'a' is a int"),
    "a number as key": ("send", {1: "a"}, {}, InvalidPayload, "not JSON"),
    "a lone surrogate": ("send", {"a": "\ud800"}, {}, InvalidPayload, "not JSON"),
    "a NUL": ("send", {"a": ["x\x00"]}, {}, InvalidPayload, "contains a NUL byte"),
    "a NUL in a key": ("send", {"a\x00": 1}, {}, InvalidPayload, "contains a NUL byte"),
    "a byte too much": ("send", {"a": FITS + "xx"}, {}, PayloadTooLarge, "1,048,577 bytes"),
    "ten megabytes": ("send", {"a": "x" * 10_000_000}, {}, PayloadTooLarge, "the limit is"),
    "no definition": ("sned", {}, {}, UnknownDefinition, "'sned'; did you mean 'send'"),
    "nothing like it": (
        "archive",
        {},
        {},
        UnknownDefinition,
        "'archive'; create it, or start a worker",
    ),
    "priority": ("send", {}, {"priority": 1001}, InvalidOption, "to 1000"),
    "below zero": ("send", {}, {"priority": -1}, InvalidOption, "from 0"),
    "negative delay": ("send", {}, {"delay": -HOUR}, InvalidOption, "delay must not be negative"),
    "past deadline": ("send", {}, {"deadline": NOW - HOUR}, InvalidOption, "has passed"),
    "due too late": (
        "send",
        {},
        {"scheduled_for": NOW + 2 * HOUR, "deadline": NOW + HOUR},
        InvalidOption,
        "the job could never run",
    ),
    "delayed too long": (
        "send",
        {},
        {"delay": 2 * HOUR, "deadline": NOW + HOUR},
        InvalidOption,
        "the job could never run",
    ),
    "no tenant": ("send", {}, {"tenant_id": "nobody"}, InvalidOption, "tenant does not exist"),
    "a typo": ("send", {}, {"prioritty": 1}, InvalidOption, "did you mean priority"),
}


def written(connection: psycopg.Connection) -> int:
    """Rows of jobs, finished jobs and keys."""
    query = """select (select count(*) from mainspring.job_status)
                    + (select count(*) from mainspring.enqueue_keys)"""
    row = connection.execute(query).fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("what", WRONG)
async def test_a_wrong_enqueue_is_refused_and_writes_nothing(app, connection, what):
    key, payload, options, kind, message = WRONG[what]

    with pytest.raises(kind, match=message) as refused:
        await app.aenqueue(key, payload, **options)

    assert type(refused.value) is kind
    assert refused.value.code == kind.code
    assert written(connection) == 0


@pytest.mark.parametrize("what", WRONG)
def test_plain_code_gets_the_same_error(app: Mainspring, connection, what):
    key, payload, options, kind, message = WRONG[what]

    with pytest.raises(kind, match=message):
        app.enqueue(key, payload, **options)

    assert written(connection) == 0


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("others", [1, 300])
async def test_one_wrong_payload_refuses_the_whole_bulk(app, connection, what, others):
    key, payload, options, kind, message = WRONG[what]

    with pytest.raises(kind, match=message):
        await app.aenqueue_many(key, [*({"n": n} for n in range(others)), payload], **options)

    assert written(connection) == 0


async def test_the_largest_payload_that_fits_is_taken(app):
    handle = await app.aenqueue("send", {"a": FITS})

    assert (await handle.ajob()).payload == {"a": FITS}


async def test_a_raised_limit_holds_for_every_way_in(database_url):
    settings = load(database_url=database_url, max_payload_bytes=3 * LIMIT)
    async with Mainspring(settings=settings) as app:
        app.job(key="send")(lambda text: None)
        payload = {"text": "x" * 2 * LIMIT}
        await app.aenqueue_many("send", [payload])
        handle = await app.aenqueue("send", payload)

        assert (await handle.ajob()).payload == payload


async def test_a_backslash_that_looks_like_a_nul_is_taken(app):
    payload = {"a": "\\u0000", "\\": '\t"\n'}
    handle = await app.aenqueue("send", payload)
    bulk = await app.aenqueue_many("send", [payload] * 300)

    assert (await handle.ajob()).payload == payload
    assert (await app.jobs.aget(bulk[299])).payload == payload


async def test_an_idempotency_key_belongs_to_its_first_request(app, connection):
    first = await app.aenqueue("send", {"a": 1}, idempotency_key="k")
    rows = written(connection)

    with pytest.raises(IdempotencyConflict, match=f"'k' belongs to job {first.id}") as refused:
        await app.aenqueue("send", {"a": 2}, idempotency_key="k")

    assert (refused.value.idempotency_key, refused.value.job_id) == ("k", first.id)
    assert written(connection) == rows


async def test_a_taken_dedupe_key_leaves_no_trace_of_the_second(app, connection):
    first = await app.aenqueue("send", {}, dedupe_key="k")
    rows = written(connection)

    with pytest.raises(DuplicateJob, match=f"job {first.id} already has") as refused:
        await app.aenqueue("send", {}, dedupe_key="k", idempotency_key="i", dedupe_window=HOUR)

    assert (refused.value.dedupe_key, refused.value.job_id) == ("k", first.id)
    assert written(connection) == rows


async def test_a_wrong_enqueue_in_the_callers_transaction_writes_nothing(app, database_url):
    await app.aregister_definitions()
    with psycopg.connect(database_url) as inside:
        with pytest.raises(InvalidOption, match="has passed"), inside.transaction():
            app.enqueue("send", {}, deadline=NOW - HOUR, connection=inside)
        app.enqueue("send", {}, connection=inside)

    assert len(await app.jobs.alist()) == 1


@pytest.mark.parametrize(
    ("arguments", "sqlstate"),
    [
        ("'send', '[]'", "MS001"),
        ("'send', null", "MS001"),
        (f"'send', jsonb_build_object('a', repeat('x', {LIMIT}))", "MS002"),
        ("'send', priority => 1001", "MS003"),
        ("'send', priority => -1", "MS003"),
        ("'send', max_attempts => 0", "MS003"),
        ("'send', delay => '-1 second'", "MS003"),
        ("'send', delay => '1 second', scheduled_for => now()", "MS003"),
        ("'send', deadline => now()", "MS003"),
        ("'send', tenant => 'nobody'", "MS003"),
        ("'send', dedupe_by => 'size'", "MS003"),
        ("'send', dedupe_key => 'k', on_duplicate => 'ignore'", "MS003"),
        ("'sned'", "MS010"),
        ("null", "MS010"),
    ],
)
async def test_sql_refuses_it_too(app, connection, arguments, sqlstate):
    await app.aregister_definitions()

    with pytest.raises(psycopg.Error) as refused:
        connection.execute(f"select mainspring.enqueue({arguments})".encode())

    assert refused.value.sqlstate == sqlstate
    assert written(connection) == 0


async def test_retry_refuses_a_wrong_payload_and_keeps_the_job(app):
    handle = await app.aenqueue("send", {"a": 1})
    await app.jobs.acancel(handle.id)

    with pytest.raises(PayloadTooLarge):
        await app.jobs.aretry(handle.id, {"a": "x" * LIMIT})

    assert (await handle.ajob()).payload == {"a": 1}
