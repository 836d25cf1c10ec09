"""Tags, correlation ids, reasons and keys hold no secret of the job that they are for."""

import base64
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.domain.errors import InvalidOption
from mainspring.services.secrets import generate_key
from mainspring.settings import load
from tests.support.secret_schemas import MARKED, of

SECRET = {"user": "ada", "word": "Hunter2-x"}
WORDS = {
    "as it is": "Hunter2-x",
    "other case": "HUNTER2-X",
    "hex": b"Hunter2-x".hex(),
    "base64": base64.b64encode(b"ada:Hunter2-x").decode(),
}


@pytest.fixture(params=["", generate_key()], ids=["plain", "encrypted"])
async def app(database_url: str, request: Any) -> AsyncIterator[Mainspring]:
    settings = load(database_url=database_url, encryption_keys=request.param)
    async with Mainspring(settings=settings) as app:

        @app.job(key="login", arg_schema=of(user={"type": "string"}, word=MARKED))
        async def login(**payload: object) -> None: ...

        yield app


def stored(connection: psycopg.Connection) -> str:
    """Whatever is kept of all jobs, but for their payloads."""
    rows = connection.execute(
        "select to_jsonb(job) - 'payload' from mainspring.all_jobs as job"
        " union all select to_jsonb(entry) from mainspring.audit as entry"
        " union all select to_jsonb(vote) from mainspring.approvals as vote"
    ).fetchall()
    return str(rows)


@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
async def test_tags_and_correlation_ids_are_redacted(app, connection, word):
    options: dict[str, Any] = {"tags": ["eu", f"of {word}"], "correlation_id": f"c/{word}"}
    await app.aenqueue("login", SECRET, **options)
    await app.aenqueue_many("login", [{"user": "bob"}, SECRET], **options)
    flow = app.flow("f")
    flow.add("login", SECRET, **options)
    await flow.aenqueue()

    assert word not in stored(connection)
    rows = connection.execute("select tags, correlation_id from mainspring.jobs").fetchall()
    assert len(rows) == 4
    for tags, correlation_id in rows:
        assert tags[0] == "eu"
        assert "[redacted]" in tags[1]
        assert correlation_id.startswith("c/[redacted]") or word == WORDS["base64"]


@pytest.mark.parametrize("option", ["dedupe_key", "idempotency_key", "limit_key"])
@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
async def test_a_key_with_a_secret_is_refused(app, option, word):
    with pytest.raises(InvalidOption, match=f"{option} contains the value of a secret field"):
        await app.aenqueue("login", SECRET, **{option: f"login:{word}"})


async def test_one_of_many_keys_with_a_secret_is_refused(app):
    with pytest.raises(InvalidOption, match="dedupe_keys contains the value"):
        await app.aenqueue_many("login", [SECRET] * 2, dedupe_keys=["a", "b-Hunter2-x"])


@pytest.mark.parametrize(
    ("secret", "key", "is_refused"),
    [("1234", "order-12345", False), ("1234", "order-1234", True), ("ad", "ada", False)],
)
async def test_a_short_secret_counts_as_a_word_of_its_own(app, secret, key, is_refused):
    given = {"dedupe_key": key}
    if is_refused:
        with pytest.raises(InvalidOption):
            await app.aenqueue("login", {"word": secret}, **given)
    else:
        assert (await app.aenqueue("login", {"word": secret}, **given)).is_new


@pytest.mark.parametrize("word", WORDS.values(), ids=WORDS)
async def test_the_reason_for_a_cancel_is_redacted(app, connection, word):
    handle = await app.aenqueue("login", SECRET)
    await app.jobs.acancel(handle.id, f"wrong: {word}")

    assert word not in stored(connection)
    assert (await handle.ajob()).last_error.startswith("wrong: ")


async def test_the_reasons_of_votes_are_redacted(app, connection):
    for _ in range(2):
        await app.aenqueue("login", SECRET, approvals_needed=2)
    rows = connection.execute("select job_id from mainspring.jobs order by 1").fetchall()
    (first,), (second,) = rows

    await app.approvals.aapprove(first, reason="it is Hunter2-x", by="ann")
    await app.approvals.areject(second, reason="not Hunter2-x", by="ann")

    assert "Hunter2" not in stored(connection)
    assert "not [redacted]" in stored(connection)


async def test_words_for_a_job_without_secrets_stay_as_they_are(app, connection):
    @app.job(key="plain")
    async def plain(**payload: object) -> None: ...

    options: dict[str, Any] = {"tags": ["Hunter2-x"], "correlation_id": "Hunter2-x"}
    handle = await app.aenqueue("plain", SECRET, dedupe_key="Hunter2-x", **options)
    await app.jobs.acancel(handle.id, "Hunter2-x")

    job = await handle.ajob()
    assert (job.tags, job.correlation_id) == (("Hunter2-x",), "Hunter2-x")
    assert job.last_error == "Hunter2-x"
