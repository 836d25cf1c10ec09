"""Use cases of sessions: who is logged in, and ending it.

Everyone may see and end their own; whoever may manage people, those of the people of its tenant.
"""

from mainspring.db.sessions import Session
from mainspring.domain.access.roles import READ, WRITE, Caller, allows, may
from mainspring.domain.access.tokens import LoginSession
from mainspring.domain.errors.access import SessionNotFound
from mainspring.domain.filters import Several, texts
from mainspring.services import people
from mainspring.store import sessions as store


async def list_sessions(
    session: Session,
    caller: Caller,
    tenant_id: str | None,
    *,
    person: Several[str] = None,
    before: int | None = None,
    limit: int = 100,
) -> list[LoginSession]:
    """The newest first: of all people whom the caller may see, or of some of them; else its own."""
    names = texts("person", person)
    if not _manages(caller, READ):
        own = caller.person_id if caller.is_session else None
        if own is None or (names and caller.person not in names):
            return []
        return await store.list_sessions(
            session, tenant_id, person_ids=[own], before=before, limit=limit
        )
    chosen = [(await people.get(session, name, tenant_id)).person_id for name in names]
    return await store.list_sessions(
        session, tenant_id, person_ids=chosen, before=before, limit=limit
    )


async def end(session: Session, caller: Caller, session_id: int, *, tenant_id: str | None) -> None:
    """From the next request on nobody is let in by it."""
    found = await store.get(session, session_id, tenant_id)
    is_own = found is not None and caller.is_session and found.person_id == caller.person_id
    if found is None or not (is_own or _manages(caller, WRITE)):
        raise SessionNotFound(session_id)
    if not await store.end(session, found.person_id, session_id, tenant_id=found.tenant_id):
        raise SessionNotFound(session_id)


async def end_all(session: Session, name: str, tenant_id: str | None) -> int:
    """End every session of a person; returns how many there were."""
    person = await people.get(session, name, tenant_id)
    return await store.end(session, person.person_id, None, tenant_id=person.tenant_id)


def _manages(caller: Caller, verb: str) -> bool:
    return may(caller.role, "people", verb) and allows(caller.scopes, "people", verb)
