"""Batches: a statement over many rows that gets past the one it cannot process.

The rule is in `domain/batches.py`. As long as nothing fails, a batch is one statement.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import psycopg
from psycopg import AsyncConnection

from mainspring.domain.batches import LOCKED_PAUSES, PAUSES, halves
from mainspring.domain.sqlstates import is_locked, is_of_a_row
from mainspring.services.job_names import log_about
from mainspring.store import set_aside

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Batch(Generic[T]):
    """What a duty does with many rows at once.

    `run` processes the rows with these keys, or without any keys the next ones it finds; each call
    is a transaction of its own. `find` names the rows that it would process. Both leave out what is
    set aside under the name of the duty.
    """

    duty: str
    run: Callable[[AsyncConnection[Any], Sequence[int] | None], Awaitable[list[T]]]
    find: Callable[[AsyncConnection[Any]], Awaitable[Sequence[int]]]


async def run_batch(connection: AsyncConnection[Any], batch: Batch[T]) -> list[T]:
    """What the rows gave that could be processed; the others are set aside."""
    try:
        return await batch.run(connection, None)
    except psycopg.Error as error:
        if not is_of_a_row(error.sqlstate):
            raise
        keys = await batch.find(connection)
        if not keys:
            raise
        return await _run_keys(connection, batch, keys, cause=error)


async def _run_keys(
    connection: AsyncConnection[Any],
    batch: Batch[T],
    keys: Sequence[int],
    *,
    cause: psycopg.Error,
) -> list[T]:
    """Process rows that failed together."""
    if len(keys) == 1:
        await _put_aside(connection, batch.duty, keys[0], cause=cause)
        return []
    given: list[T] = []
    for half in halves(keys):
        try:
            given += await batch.run(connection, half)
        except psycopg.Error as error:
            if not is_of_a_row(error.sqlstate):
                raise
            given += await _run_keys(connection, batch, half, cause=error)
    return given


async def _put_aside(
    connection: AsyncConnection[Any], duty: str, key: int, *, cause: psycopg.Error
) -> None:
    reason = str(cause).strip().partition("\n")[0]
    pauses = LOCKED_PAUSES if is_locked(cause.sqlstate) else PAUSES
    tries = await set_aside.put(connection, duty, key, reason=reason, pauses=pauses)
    seconds = pauses[min(tries, len(pauses)) - 1].total_seconds()
    facts = {"duty": duty, "tries": tries, "seconds": seconds, "error": reason}
    await log_about(connection, "row_set_aside", key, **facts)
