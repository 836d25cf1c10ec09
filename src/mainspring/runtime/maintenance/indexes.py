"""Indexes: rebuilds those that are many times their content, while they are used.

A transaction that is kept open for long keeps dead entries in every index of the queue. When it has
ended they are removed, but the pages stay. `reindex concurrently` makes a new index beside the old
one; a run that is ended leaves an invalid one behind, which is dropped.
"""

from typing import Any

import psycopg
from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.domain.housekeeping import LARGE_INDEX_BYTES, IndexSize
from mainspring.store import housekeeping as store

# Whoever holds an old snapshot is waited for, and meanwhile the table is not vacuumed.
_LOCK_MS = 10_000


async def rebuild_indexes(
    connection: AsyncConnection[Any], *, min_bytes: int = LARGE_INDEX_BYTES
) -> list[str]:
    """One after the other; the names of those that were rebuilt. None if someone else cleans up.
    The connection must not belong to a pooler: it is used as a session."""
    if not await store.lock_cleanup(connection, lock_ms=_LOCK_MS):
        return []
    try:
        return [
            index.name
            for index in await store.large_indexes(connection, min_bytes=min_bytes)
            if await _mend(connection, index)
        ]
    finally:
        if not connection.closed:
            await store.unlock_cleanup(connection)


async def _mend(connection: AsyncConnection[Any], index: IndexSize) -> bool:
    """Whether the index was rebuilt."""
    if not index.is_valid:
        await store.drop_index(connection, index.name)
        return False
    if not index.is_bloated:
        return False
    try:
        await store.rebuild_index(connection, index.name)
    except psycopg.errors.LockNotAvailable as error:
        # The next pass drops what it leaves behind, and tries again.
        telemetry.event("cleanup_failed", duty=f"index {index.name}", error=str(error))
        return False
    telemetry.event("index_rebuilt", index=index.name, bytes=index.bytes, entries=index.entries)
    return True
