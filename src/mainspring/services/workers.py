"""Use cases of workers: looking at them."""

from collections.abc import Mapping
from typing import Any

from mainspring.db.database import Database
from mainspring.db.sql_errors import translated
from mainspring.store import workers as store


async def list_workers(database: Database) -> list[Mapping[str, Any]]:
    """All workers, the newest first."""
    with translated():
        async with (await database.async_pool()).connection() as connection:
            return await store.list_workers(connection)
