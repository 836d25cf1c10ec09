"""Use cases of workers: looking at them."""

from collections.abc import Mapping
from typing import Any

from mainspring.db.sessions import Session
from mainspring.store import workers as store


async def list_workers(
    session: Session, *, before: int | None = None, limit: int = 1000
) -> list[Mapping[str, Any]]:
    """The workers that the caller may see, the newest first."""
    return await store.list_workers(session, before=before, limit=limit)
