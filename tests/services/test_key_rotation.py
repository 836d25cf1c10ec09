"""A new key: everything is encrypted under it, and the old one can go."""

import base64
import json
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from psycopg.types.json import Jsonb

from mainspring import Mainspring
from mainspring.domain.errors import DuplicateJob, SettingsError
from mainspring.domain.secrets.keys import read_keys
from mainspring.domain.types import TenantId
from mainspring.services.key_rotation import Rotation
from mainspring.services.secrets import KeyRing, Owner, generate_key
from mainspring.settings import load
from tests.support.secret_schemas import MARKED, of

ADA = Owner(TenantId("default"), "login")
SECRET = {"word": "hunter2"}
OLD, NEW = generate_key(), generate_key()
NEW_ALONE = KeyRing(read_keys(NEW))


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Mainspring]:
    """An app with the old key, whose job `login` has a secret."""
    settings = load(database_url=database_url, encryption_keys=OLD)
    async with Mainspring(settings=settings) as app:

        @app.job(key="login", arg_schema=of(word=MARKED))
        async def login(word: str) -> None: ...

        yield app


def use(app: Mainspring, *keys: str) -> None:
    url = app.settings.database_url
    app.use(load(database_url=url, encryption_keys=",".join(keys)))


def payloads(app: Mainspring, table: str) -> list[Any]:
    with psycopg.connect(app.database.url) as connection:
        rows = connection.execute(f"select payload from mainspring.{table}".encode()).fetchall()
    return [NEW_ALONE.decrypt(payload, ADA).payload for (payload,) in rows]


async def test_everything_gets_the_new_key(app):
    await app.aenqueue_many("login", [SECRET] * 5)
    ended = await app.aenqueue("login", SECRET)
    await app.jobs.acancel(ended.id)
    await app.schedules.acreate("daily", "login", cron="@daily", payload=SECRET)

    use(app, NEW, OLD)
    done = await app.secrets.arotate(batch=2)

    assert done == Rotation(jobs=5, finished=1, schedules=1)
    assert payloads(app, "jobs") == [SECRET] * 5
    assert payloads(app, "jobs_history") == payloads(app, "schedules") == [SECRET]


async def test_a_second_rotation_has_nothing_to_do(app):
    await app.aenqueue("login", SECRET)
    use(app, NEW, OLD)
    await app.secrets.arotate()

    assert await app.secrets.arotate() == Rotation()


async def test_what_no_key_opens_is_counted_and_left(app):
    await app.aenqueue("login", SECRET)
    use(app, NEW)

    assert await app.secrets.arotate() == Rotation(unreadable=1, unreadable_rows=["job 1"])


@pytest.mark.parametrize(
    "stored",
    [
        '{"$mainspring": "encrypted", "key": ["x"], "value": "AAAA"}',
        '{"$mainspring": "encrypted", "key": {}, "nonce": 1}',
        '{"$mainspring": "encrypted", "in": ' + "[" * 1100 + "]" * 1100 + "}",
    ],
    ids=["list", "object", "deep"],
)
async def test_a_rotation_goes_on_past_what_looks_encrypted(app, connection, stored):
    for _ in range(3):
        await app.aenqueue("login", SECRET)
    await app.schedules.acreate("daily", "login", cron="@daily", payload=SECRET)
    connection.execute(
        "update mainspring.jobs set payload = jsonb_build_object('word', %s::jsonb)"
        " where job_id = 2",
        (stored,),
    )
    use(app, NEW, OLD)

    done = await app.secrets.arotate(batch=2)

    assert done == Rotation(jobs=2, schedules=1, unreadable=1, unreadable_rows=["job 2"])


async def test_a_rotation_goes_on_past_a_row_that_cannot_be_written(app, connection):
    for _ in range(5):
        await app.aenqueue("login", SECRET)
    connection.execute(
        "create function refuse() returns trigger language plpgsql as"
        " $$ begin raise 'it is poison'; end $$;"
        " create trigger refuse before update on mainspring.jobs for each row"
        " when (new.job_id = 3) execute function refuse()"
    )
    use(app, NEW, OLD)

    done = await app.secrets.arotate()

    assert done == Rotation(jobs=4, refused=1, refused_rows=["job 3: it is poison"])


async def test_what_was_encrypted_without_a_nonce_gets_one(app, connection):
    """As earlier releases did it where payloads are compared."""
    handle = await app.aenqueue("login", SECRET, dedupe_by="content")
    await app.aenqueue("login", SECRET, idempotency_key="k", on_duplicate="existing")
    _make_legacy(connection)

    assert (await app.secrets.arotate()).jobs == 2

    for (payload,) in connection.execute("select payload from mainspring.jobs").fetchall():
        assert "nonce" in payload["word"]
    with pytest.raises(DuplicateJob) as caught:
        await app.aenqueue("login", SECRET, dedupe_by="content")
    assert caught.value.job_id == handle.id
    again = await app.aenqueue("login", SECRET, idempotency_key="k")
    assert not again.is_new


def _make_legacy(connection: psycopg.Connection) -> None:
    """Make all jobs and keys what an earlier release would have made of them."""
    cipher = AESSIV(read_keys(OLD)[0].material)
    bound = json.dumps(["default", "login", "word"]).encode()
    value = base64.b64encode(cipher.encrypt(b'"hunter2"', [bound])).decode()
    word = {"$mainspring": "encrypted", "key": read_keys(OLD)[0].id, "value": value}
    connection.execute("update mainspring.jobs set payload = %s", [Jsonb({"word": word})])
    connection.execute(
        "update mainspring.jobs"
        "   set dedupe_key = 'content:' || md5('login' || e'\\n' || payload::text)"
        " where dedupe_key is not null"
    )
    connection.execute(
        "update mainspring.enqueue_keys as kept"
        "   set fingerprint = md5('login' || e'\\n' || job.payload::text)"
        "  from mainspring.jobs as job where kept.job_id = job.job_id"
    )


async def test_without_keys_there_is_nothing_to_rotate_to(app):
    use(app)

    with pytest.raises(SettingsError, match="no encryption keys are configured"):
        await app.secrets.arotate()


async def test_equal_contents_are_recognised_afterwards(app):
    handle = await app.aenqueue("login", SECRET, dedupe_by="content")
    use(app, NEW, OLD)
    await app.secrets.arotate()

    with pytest.raises(DuplicateJob) as caught:
        await app.aenqueue("login", SECRET, dedupe_by="content")

    assert caught.value.job_id == handle.id


async def test_a_repeated_request_is_recognised_afterwards(app):
    first = await app.aenqueue("login", SECRET, idempotency_key="k")
    use(app, NEW, OLD)
    await app.secrets.arotate()

    again = await app.aenqueue("login", SECRET, idempotency_key="k")

    assert (again.id, again.is_new) == (first.id, False)


async def test_a_declaration_is_the_same_afterwards(app):
    app.schedules.declare("@daily", payload=SECRET)(app.functions["login"])
    await app.schedules.aprepare()
    use(app, NEW, OLD)
    await app.secrets.arotate()

    with psycopg.connect(app.database.url) as connection:
        before = connection.execute("select xmin::text from mainspring.schedules").fetchall()
        await app.schedules.aprepare()
        connection.rollback()
        after = connection.execute("select xmin::text from mainspring.schedules").fetchall()

    assert after == before


async def test_a_job_that_someone_holds_is_left_for_another_round(app):
    await app.aenqueue("login", SECRET)
    use(app, NEW, OLD)

    with psycopg.connect(app.database.url) as connection:
        connection.execute("select from mainspring.jobs for update")
        done = await app.secrets.arotate()

    assert done == Rotation(left=1)
    assert await app.secrets.arotate() == Rotation(jobs=1)
