"""Statements on sessions: who is logged in."""

from collections.abc import Sequence
from typing import Any

from mainspring.db.arrays import IntegerArray
from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.access.tokens import LoginSession

_STATEMENTS = load("sessions")


async def list_sessions(
    session: Session,
    tenant_id: str | None,
    *,
    person_ids: Sequence[int],
    before: int | None,
    limit: int,
) -> list[LoginSession]:
    """The newest first; of some people, of all people of a tenant, or of all."""
    chosen = IntegerArray(person_ids) if person_ids else None
    params = {"tenant_id": tenant_id, "person_ids": chosen, "before": before, "limit": limit}
    rows = await fetch_all(session, _STATEMENTS["list_sessions"].sql, params)
    return [_session(row) for row in rows]


async def get(session: Session, session_id: int, tenant_id: str | None) -> LoginSession | None:
    params = {"session_id": session_id, "tenant_id": tenant_id}
    row = await fetch_one(session, _STATEMENTS["get_session"].sql, params)
    return None if row is None else _session(row)


async def end(
    session: Session, person_id: int, session_id: int | None, *, tenant_id: str | None
) -> int:
    """How many sessions of the person were ended: one, or all if none is given."""
    params = {"person_id": person_id, "session_id": session_id, "tenant_id": tenant_id}
    ((count,),) = await fetch_all(session, _STATEMENTS["end_sessions"].sql, params)
    return int(count)


def _session(row: tuple[Any, ...]) -> LoginSession:
    return LoginSession(*row)
