"""Use cases of jobs: check what was asked, say it to the store."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import orjson
from psycopg import AsyncConnection

from mainspring.db.calls import Call
from mainspring.db.database import Database
from mainspring.db.sql_errors import translated
from mainspring.domain.errors import (
    InvalidOption,
    InvalidPayload,
    JobNotFound,
    JobUnsuccessful,
    PayloadTooLarge,
    ResultTimeout,
)
from mainspring.domain.jobs.filters import JobFilter
from mainspring.domain.jobs.model import Attempt, Job
from mainspring.domain.jobs.options import (
    MAX_PAYLOAD_BYTES,
    EnqueueOptions,
    ensure_payload,
    holds_nul,
)
from mainspring.domain.types import DEFAULT_TENANT, JobId, JobState, TenantId
from mainspring.store import bulk_enqueue as bulk_store
from mainspring.store import jobs as store

PLAIN = store.PLAIN
_CHUNK = 5000
_BRACE = ord("{")
_NUL = b"\\u0000"
_WORTH_A_COPY = 200
# Dates and the like come back as text, so the handler would get another type than was sent.
_STRICT = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


def encode_payload(payload: object, limit: int = MAX_PAYLOAD_BYTES) -> bytes:
    """The payload as JSON text that PostgreSQL will take."""
    ensure_payload(payload)
    try:
        encoded = orjson.dumps(payload, option=_STRICT)
    except TypeError as error:
        raise InvalidPayload(_say_what_is_not_json(payload, error)) from error
    if len(encoded) > limit:
        raise PayloadTooLarge(len(encoded), limit)
    if _NUL in encoded and holds_nul(payload):
        raise InvalidPayload("the payload holds a NUL byte, which PostgreSQL refuses")
    return encoded


def _encode_all(payloads: list[object], limit: int) -> list[bytes]:
    """All at once where all is well, which saves a call a payload; else one by one, to find
    and name what is wrong."""
    try:
        # A copy, because orjson cuts its text from a buffer of some KiB that then stays unused:
        # 400 MB for 100,000 small payloads.
        encoded = [b"%b" % orjson.dumps(payload, None, _STRICT) for payload in payloads]
    except TypeError:
        encoded = []
    if (
        len(encoded) == len(payloads)
        and all(text[0] == _BRACE for text in encoded)
        and max(map(len, encoded), default=0) <= limit
        and not _may_hold_nul(encoded)
    ):
        return encoded
    return [encode_payload(payload, limit) for payload in payloads]


def _may_hold_nul(objects: list[bytes]) -> bool:
    """Looks at many together: as each begins with a brace, nothing is found across two."""
    chunks = range(0, len(objects), _CHUNK)
    return any(_NUL in b"".join(objects[start : start + _CHUNK]) for start in chunks)


@dataclass(frozen=True, slots=True)
class Request:
    """One job to enqueue, checked and encoded."""

    definition: str
    payload: str
    options: EnqueueOptions = PLAIN

    @property
    def call(self) -> Call:
        return store.enqueue(self.definition, self.payload, self.options)

    @property
    def plain_call(self) -> Call:
        return store.enqueue_plainly(self.definition, self.payload)


def plan_enqueue(
    definition: str, payload: object, options: EnqueueOptions = PLAIN, *, limit: int
) -> Request:
    return Request(definition, encode_payload(payload, limit).decode(), options)


def enqueue(database: Database, request: Request, connection: object = None) -> tuple[JobId, bool]:
    """The job's id, and whether it is new."""
    rows = []
    if connection is None and request.options is PLAIN:
        rows = database.run(request.plain_call)
    (row,) = rows or database.run(request.call, connection)
    return row[0], row[1]


async def aenqueue(
    database: Database, request: Request, connection: object = None
) -> tuple[JobId, bool]:
    """The same from async code."""
    rows = []
    if connection is None and request.options is PLAIN:
        rows = await database.arun(request.plain_call)
    (row,) = rows or await database.arun(request.call, connection)
    return row[0], row[1]


@dataclass(frozen=True, slots=True)
class Bulk:
    """Payloads to enqueue together, checked and encoded."""

    definition: str
    payloads: list[bytes]
    options: EnqueueOptions
    dedupe_keys: Sequence[str | None] | None = None

    @property
    def calls(self) -> list[Call]:
        """As calls of the SQL function, for connections that are not ours."""
        return [
            store.enqueue_many(
                self.definition,
                self.payloads[start : start + _CHUNK],
                self.options,
                dedupe_keys=self.dedupe_keys and self.dedupe_keys[start : start + _CHUNK],
            )
            for start in range(0, len(self.payloads), _CHUNK)
        ]

    @property
    def suits_copy(self) -> bool:
        """COPY has a few round trips more and cannot leave out duplicates."""
        return self.dedupe_keys is None and len(self.payloads) >= _WORTH_A_COPY


def plan_bulk(
    definition: str,
    payloads: Iterable[object],
    options: EnqueueOptions = PLAIN,
    *,
    limit: int,
    dedupe_keys: Sequence[str | None] | None = None,
) -> Bulk:
    """Everything is checked before anything is sent, so nothing is half-written."""
    if options.dedupe_key or options.idempotency_key or options.dedupe_by:
        raise InvalidOption("dedupe_key", "is for one job; enqueue_many takes dedupe_keys")
    if options.after:
        raise InvalidOption("after", "is for one job; build a flow, or enqueue one by one")
    encoded = _encode_all(list(payloads), limit)
    if dedupe_keys is not None and len(dedupe_keys) != len(encoded):
        raise InvalidOption(
            "dedupe_keys", f"has {len(dedupe_keys)} entries for {len(encoded)} payloads"
        )
    return Bulk(definition, encoded, options, dedupe_keys)


def enqueue_bulk(database: Database, bulk: Bulk, connection: object = None) -> list[JobId]:
    """In one transaction: the caller's, or one of its own."""
    if connection is not None:
        rows = [row for call in bulk.calls for row in database.run(call, connection)]
        return [JobId(row[0]) for row in rows]
    if not bulk.suits_copy:
        return [JobId(row[0]) for row in database.run_all(bulk.calls)]
    with translated(), database.sync_pool.connection() as ours:
        ids = bulk_store.enqueue(ours, bulk.definition, bulk.payloads, options=bulk.options)
    return list(ids)


async def aenqueue_bulk(database: Database, bulk: Bulk, connection: object = None) -> list[JobId]:
    """The same from async code."""
    if connection is not None:
        rows = [row for call in bulk.calls for row in await database.arun(call, connection)]
        return [JobId(row[0]) for row in rows]
    if not bulk.suits_copy:
        return [JobId(row[0]) for row in await database.arun_all(bulk.calls)]
    with translated():
        async with (await database.async_pool()).connection() as ours:
            ids = await bulk_store.aenqueue(
                ours, bulk.definition, bulk.payloads, options=bulk.options
            )
    return list(ids)


def plan_retry(
    job_id: JobId, payload: object, tenant_id: TenantId, *, limit: int = MAX_PAYLOAD_BYTES
) -> Call:
    edited = None if payload is None else encode_payload(payload, limit).decode()
    return store.retry(tenant_id, job_id, edited)


async def get(database: Database, job_id: JobId, tenant_id: TenantId = DEFAULT_TENANT) -> Job:
    async with _reading(database) as connection:
        job = await store.get(connection, tenant_id, job_id)
    if job is None:
        raise JobNotFound(job_id)
    return job


async def list_jobs(
    database: Database,
    tenant_id: TenantId | None,
    asked: JobFilter,
    *,
    before: JobId | None = None,
    limit: int = 50,
) -> tuple[list[Job], JobId | None]:
    """Newest first, and the id to go on before, if there may be more: a page may be short, or
    empty, where few of very many jobs pass. Of all tenants if none is given."""
    async with _reading(database) as connection:
        return await store.list_jobs(connection, tenant_id, asked, before=before, limit=limit)


async def attempts(
    database: Database, job_id: JobId, tenant_id: TenantId = DEFAULT_TENANT
) -> list[Attempt]:
    async with _reading(database) as connection:
        return await store.attempts(connection, tenant_id, job_id)


async def queue_counts(
    database: Database, tenant_id: TenantId | None = DEFAULT_TENANT
) -> list[Mapping[str, Any]]:
    """Ready, waiting, running and held jobs by queue, of all tenants if none is given."""
    async with _reading(database) as connection:
        return await store.queue_counts(connection, tenant_id)


@asynccontextmanager
async def _reading(database: Database) -> AsyncIterator[AsyncConnection[Any]]:
    with translated():
        async with (await database.async_pool()).connection() as connection:
            yield connection


async def wait_for_result(
    database: Database, job_id: JobId, tenant_id: TenantId, *, seconds: float | None
) -> Any:
    """The result of a job that succeeds in time; looks often at first, then more rarely."""
    until = None if seconds is None else time.monotonic() + seconds
    pause = 0.005
    while True:
        job = await get(database, job_id, tenant_id)
        if job.state is JobState.SUCCEEDED:
            return job.result
        if job.is_final:
            raise JobUnsuccessful(job_id, job.state, job.last_error)
        if until is not None and time.monotonic() >= until:
            raise ResultTimeout(job_id, job.state)
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, 0.25)


def _say_what_is_not_json(payload: object, error: TypeError) -> str:
    if isinstance(payload, dict):
        for name, value in payload.items():
            try:
                orjson.dumps({name: value}, option=_STRICT)
            except TypeError:
                return (
                    f"the payload's {name!r} is a {type(value).__name__}, which is not JSON; "
                    "pass text, numbers, bools, lists or dicts"
                )
    return f"the payload is not JSON: {error}"
