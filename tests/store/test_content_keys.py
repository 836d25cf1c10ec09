"""Keys made of a job's content: they recognise an equal payload, and give nothing away of it."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb

from mainspring import Mainspring
from mainspring.db import migrate
from mainspring.domain.errors import DuplicateJob
from mainspring.domain.secrets.paths import REDACTED
from tests.support.api import serving
from tests.support.databases import role
from tests.support.secret_schemas import MARKED, of

SECRET = {"pin": "004711"}
HOUR = timedelta(hours=1)
DIGEST = "select mainspring.keyed_digest('content', 'x')"
DIGESTS = (hashlib.md5, hashlib.sha1, hashlib.sha256)


@pytest.fixture
async def app(database_url: str) -> AsyncIterator[Mainspring]:
    async with Mainspring(database_url) as app:

        @app.job(key="unlock", arg_schema=of(pin=MARKED))
        async def unlock(pin: str) -> None: ...

        await app.aregister_definitions()
        yield app


def shown_key(connection: psycopg.Connection) -> str:
    """The dedupe key of the newest job, as readers see it."""
    ((key,),) = connection.execute(
        "select dedupe_key from mainspring.job_status order by job_id desc limit 1"
    ).fetchall()
    return str(key)


def guesses(prefix: str) -> set[str]:
    """Whatever can be made of every PIN with what anybody knows."""
    texts = (json.dumps({"pin": f"{number:06}"}) for number in range(10_000))
    contents = [f"{before}{text}".encode() for text in texts for before in ("unlock\n", "")]
    return {f"{prefix}{digest(each).hexdigest()}" for each in contents for digest in DIGESTS}


async def test_a_key_by_content_does_not_give_a_short_secret_away(app, connection):
    await app.aenqueue("unlock", SECRET, dedupe_by="content")

    key = shown_key(connection)

    assert key.startswith("content:")
    assert key not in guesses("content:")


async def test_nor_does_that_of_a_trigger_with_a_window(app, connection):
    await app.triggers.acreate(
        "t", event="e", definition="unlock", payload={"pin": "{{event.pin}}"}, dedupe_window=HOUR
    )
    await app.aemit("e", SECRET)
    await app.events.adispatch()

    key = shown_key(connection)

    prefix = key[: key.rindex(":") + 1]
    assert prefix.startswith("trigger:")
    assert key not in guesses(prefix)


async def test_nor_does_what_is_kept_of_a_request(app, connection):
    await app.aenqueue("unlock", SECRET, idempotency_key="k")

    ((kept,),) = connection.execute("select fingerprint from mainspring.enqueue_keys").fetchall()

    assert kept not in guesses("")


def test_the_key_of_an_installation_is_random(connection):
    ((key,),) = connection.execute(
        "select key from mainspring.installation_keys where name = 'content'"
    ).fetchall()

    assert len(bytes(key)) == 64
    assert len(set(bytes(key))) > 20


def test_only_the_owner_reads_the_keys(database_url, connection):
    connection.execute("select mainspring.open_to_app()")
    with role(database_url) as caller:
        connection.execute(f"grant usage on schema mainspring to {caller}".encode())
        connection.execute(
            f"grant execute on all functions in schema mainspring to {caller}".encode()
        )
        for name in (caller, "pg_database_owner"):
            for statement in ("table mainspring.installation_keys", DIGEST):
                with connection.transaction(force_rollback=True):
                    connection.execute(f"set local role {name}".encode())
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        connection.execute(statement.encode())


async def test_every_way_in_makes_the_same_key(app, connection, database_url):
    handle = await app.aenqueue("unlock", SECRET, dedupe_by="content")
    with pytest.raises(DuplicateJob) as caught:
        await app.aenqueue("unlock", SECRET, dedupe_by="content")
    with pytest.raises(psycopg.Error, match=f"job {handle.id} already has the dedupe key"):
        connection.execute(
            "select mainspring.enqueue('unlock', %s, dedupe_by => 'content')", [Jsonb(SECRET)]
        )
    async with serving(database_url) as api:
        asked = {"definition": "unlock", "payload": SECRET, "dedupe_by": "content"}
        answer = await api.post("/jobs", asked)

    assert caught.value.job_id == handle.id
    assert answer.status_code == 409, answer.text


async def test_another_tenant_has_another_key(app, connection):
    connection.execute("insert into mainspring.tenants (tenant_id) values ('acme')")
    keys = set()
    for tenant in ("default", "acme"):
        await app.aenqueue("unlock", SECRET, dedupe_by="content", tenant_id=tenant)
        keys.add(shown_key(connection))

    assert len(keys) == 2


# Keys that an earlier release wrote


LEGACY = "content:" + hashlib.md5(b'unlock\n{"pin": "004711"}').hexdigest()


def upgrade(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a release with other functions."""
    version = migrate.recorded_functions()[0] + 1
    monkeypatch.setattr(migrate, "recorded_functions", lambda: (version, "0" * 64))
    asyncio.run(migrate.migrate(url))


def test_an_upgrade_replaces_them(database_url, connection, monkeypatch):
    _define(connection)
    job_id = _enqueue(connection, dedupe_window="1 hour")
    connection.execute("update mainspring.jobs set dedupe_key = %s", [LEGACY])
    connection.execute("update mainspring.enqueue_keys set key = %s", [LEGACY])

    upgrade(database_url, monkeypatch)

    assert LEGACY not in _all_keys(connection)
    with pytest.raises(psycopg.Error, match=f"job {job_id} already has the dedupe key"):
        _enqueue(connection)
    connection.execute("select mainspring.cancel(%s)", [job_id])
    with pytest.raises(psycopg.Error, match=f"job {job_id} already has the dedupe key"):
        _enqueue(connection, dedupe_window="1 hour")


def test_those_of_finished_jobs_are_not_shown_and_replaced_by_a_retry(connection):
    _define(connection)
    job_id = _enqueue(connection)
    connection.execute("select mainspring.cancel(%s)", [job_id])
    connection.execute("update mainspring.jobs_history set dedupe_key = %s", [LEGACY])

    assert shown_key(connection) == f"content:{REDACTED}"

    connection.execute("select mainspring.retry(%s)", [job_id])
    assert len(shown_key(connection)) == len("content:") + 64


def test_a_request_from_before_an_upgrade_is_recognised(connection):
    _define(connection)
    job_id = _enqueue(connection, dedupe_by=None, idempotency_key="k")
    connection.execute(
        "update mainspring.enqueue_keys set fingerprint = %s", [LEGACY.removeprefix("content:")]
    )

    assert _enqueue(connection, dedupe_by=None, idempotency_key="k") == job_id
    with pytest.raises(psycopg.Error, match="which has a different definition or payload"):
        _enqueue(connection, {"pin": "000815"}, dedupe_by=None, idempotency_key="k")


def _define(connection: psycopg.Connection) -> None:
    connection.execute("insert into mainspring.definitions (key, kind) values ('unlock', 'python')")


def _enqueue(connection: psycopg.Connection, payload: Any = None, **options: Any) -> int:
    given = {"dedupe_by": "content", **options}
    named = ", ".join(f"{name} => %({name})s" for name in given)
    named = named.replace("%(dedupe_window)s", "%(dedupe_window)s::interval")
    ((job_id,),) = connection.execute(
        f"select mainspring.enqueue('unlock', %(payload)s, {named})".encode(),
        {**given, "payload": Jsonb(payload or SECRET)},
    ).fetchall()
    return int(job_id)


def _all_keys(connection: psycopg.Connection) -> set[str]:
    rows = connection.execute(
        "select dedupe_key from mainspring.jobs union select key from mainspring.enqueue_keys"
    ).fetchall()
    return {key for (key,) in rows}
