"""Bulk enqueue by COPY, on connections of our own."""

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple, cast

from psycopg import AsyncConnection, Connection

from mainspring.db.arrays import TextArray
from mainspring.db.statements import load
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import JobId
from mainspring.store.jobs import DEFAULT_OPTIONS
from mainspring.store.rows.jobs import option_params

_STATEMENTS = load("jobs")
_PREPARE = _STATEMENTS["prepare_bulk"].sql
_COPY = _STATEMENTS["copy_jobs"].sql
_ENQUEUE = _STATEMENTS["enqueue_many"].sql
_ANNOUNCE = _STATEMENTS["announce"].sql
_ROWS_A_WRITE = 2000
_COPIED = frozenset(
    {
        *("tenant_id", "queue", "priority", "max_attempts", "scheduled_for", "delay", "deadline"),
        *("correlation_id", "tags"),
    }
)
_NOT_COPIED = frozenset(field.name for field in fields(EnqueueOptions)) - _COPIED


class BulkPlan(NamedTuple):
    """What the rows have in common, and their ids."""

    version: int
    queue: str
    priority: int
    max_attempts: int
    due_at: str
    waits: bool
    created_by: str | None
    is_plain: bool
    first_id: int
    last_id: int
    job_ids: list[int] | None

    @property
    def ids(self) -> Sequence[JobId]:
        ids = self.job_ids or range(self.first_id, self.last_id + 1)
        return cast("Sequence[JobId]", ids)  # Wrapping each is not free.


def enqueue(
    connection: Connection[Any],
    definition: str,
    payloads: Sequence[bytes],
    *,
    options: EnqueueOptions,
) -> Sequence[JobId]:
    """One job a payload, in one transaction; returns their ids."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute(_PREPARE, _params(definition, payloads, options))
        plan = BulkPlan(*_only(cursor.fetchall()))
        if not plan.is_plain or not _suits_copy(options):
            cursor.execute(_ENQUEUE, _inserted(definition, payloads, options))
            return [JobId(row[0]) for row in cursor.fetchall()]
        with cursor.copy(_COPY) as copy:
            for lines in _lines(plan, definition, payloads, options=options):
                copy.write(lines)
        cursor.execute(_ANNOUNCE, _notification(plan, options))
    return plan.ids


async def aenqueue(
    connection: AsyncConnection[Any],
    definition: str,
    payloads: Sequence[bytes],
    *,
    options: EnqueueOptions,
) -> Sequence[JobId]:
    """The same in the transaction that an async connection has open."""
    async with connection.cursor() as cursor:
        await cursor.execute(_PREPARE, _params(definition, payloads, options))
        plan = BulkPlan(*_only(await cursor.fetchall()))
        if not plan.is_plain or not _suits_copy(options):
            await cursor.execute(_ENQUEUE, _inserted(definition, payloads, options))
            return [JobId(row[0]) for row in await cursor.fetchall()]
        async with cursor.copy(_COPY) as copy:
            for lines in _lines(plan, definition, payloads, options=options):
                await copy.write(lines)
        await cursor.execute(_ANNOUNCE, _notification(plan, options))
    return plan.ids


def _params(definition: str, payloads: Sequence[bytes], options: EnqueueOptions) -> dict[str, Any]:
    return {"definition": definition, "count": len(payloads), **option_params(options)}


def _suits_copy(options: EnqueueOptions) -> bool:
    """Whether nothing is asked for that COPY cannot write, so that an option that is new here
    goes through the database's own function."""
    return all(getattr(options, name) == getattr(DEFAULT_OPTIONS, name) for name in _NOT_COPIED)


def _inserted(
    definition: str, payloads: Sequence[bytes], options: EnqueueOptions
) -> dict[str, Any]:
    """For jobs that wait for more than time: the database decides for each what."""
    return {
        "definition": definition,
        "payloads": TextArray(payloads),
        "dedupe_keys": None,
        **option_params(options),
    }


def _notification(plan: BulkPlan, options: EnqueueOptions) -> dict[str, Any]:
    return {
        "queue": plan.queue,
        "priority": plan.priority,
        "tenant_id": options.tenant_id,
        "first_id": plan.first_id,
        "due_at": plan.due_at,
    }


def _only(rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    (row,) = rows
    return row


def _lines(
    plan: BulkPlan, definition: str, payloads: Sequence[bytes], *, options: EnqueueOptions
) -> Iterator[bytes]:
    """COPY text, many rows at a time: all but id and payload is the same in each."""
    shared = b"\t".join(
        _cell(value)
        for value in (
            options.tenant_id,
            plan.queue,
            definition,
            str(plan.version),
            str(plan.priority),
            str(plan.max_attempts),
            plan.due_at,
            "time" if plan.waits else None,
            options.deadline.isoformat() if options.deadline else None,
            options.correlation_id,
            _array(options.tags) if options.tags else None,
            plan.created_by,
        )
    )
    tail = b"\t" + shared + b"\n"
    ids = plan.ids
    for start in range(0, len(payloads), _ROWS_A_WRITE):
        chosen = slice(start, start + _ROWS_A_WRITE)
        batch = zip(ids[chosen], payloads[chosen], strict=True)
        yield b"".join([b"%d\t%b%b" % (i, p.replace(b"\\", b"\\\\"), tail) for i, p in batch])


def _cell(value: str | None) -> bytes:
    """A value in COPY's text format; JSON text needs only its backslashes doubled."""
    if value is None:
        return b"\\N"
    for character, escape in (("\\", "\\\\"), ("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
        value = value.replace(character, escape)
    return value.encode()


def _array(values: Sequence[str]) -> str:
    quoted = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return "{" + ",".join(f'"{value}"' for value in quoted) + "}"
