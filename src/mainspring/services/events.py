"""Use cases of events: emit, read and replay them."""

from mainspring.db.plans import Plan, Statement
from mainspring.db.sessions import Session
from mainspring.domain.errors import (
    EventNotFound,
    InvalidEvent,
    InvalidPayload,
    InvalidTrigger,
    PayloadTooLarge,
    TriggerNotFound,
)
from mainspring.domain.events import Event, ensure_name, ensure_pattern
from mainspring.domain.filters import Several, texts
from mainspring.domain.jobs.options import ensure_text
from mainspring.domain.types import EventId, TenantId
from mainspring.services import triggers
from mainspring.services.payloads import encode_payload
from mainspring.store import events as store


def emit(
    name: str,
    context: object,
    *,
    tenant_id: str,
    correlation_id: str | None,
    limit: int,
    connection: object = None,
) -> Plan[EventId]:
    """The event's id. What is wrong is raised at once, before the plan runs."""
    ensure_name(name)
    ensure_text("tenant_id", tenant_id)
    if correlation_id is not None:
        ensure_text("correlation_id", correlation_id)
    encoded = encode_context(context, limit)
    call = store.emit(TenantId(tenant_id), name, encoded, correlation_id=correlation_id)
    return _emit(Statement(call, connection))


def _emit(statement: Statement) -> Plan[EventId]:
    ((event_id,),) = yield statement
    return EventId(event_id)


def encode_context(context: object, limit: int) -> str:
    try:
        return encode_payload(context, limit).decode()
    except (InvalidPayload, PayloadTooLarge) as error:
        problem = str(error).removeprefix("the payload").removeprefix("'s ").strip()
        raise InvalidEvent("context", problem) from None


async def get(session: Session, tenant_id: TenantId, event_id: EventId) -> Event:
    event = await store.get(session, tenant_id, event_id)
    if event is None:
        raise EventNotFound(event_id)
    return event


async def list_events(
    session: Session,
    tenant_id: TenantId | None,
    *,
    name: Several[str] = None,
    handled: bool | None = None,
    failed: bool | None = None,
    before: EventId | None = None,
    limit: int = 50,
) -> list[Event]:
    """Newest first, of all tenants if none is given; a name may be a pattern."""
    patterns = texts("name", name)
    for pattern in patterns:
        _ensure_filter(pattern)
    return await store.list_events(
        session,
        tenant_id,
        patterns=patterns,
        handled=handled,
        failed=failed,
        before=before,
        limit=limit,
    )


async def replay(
    session: Session, tenant_id: TenantId, event_id: EventId, *, trigger: str | None
) -> Event:
    """The event, which waits for a dispatcher once more."""
    try:
        await store.replay(session, tenant_id, event_id, trigger=trigger)
    except TriggerNotFound as error:
        raise await triggers.missing(session, tenant_id, error.name) from None
    return await get(session, tenant_id, event_id)


def _ensure_filter(name: str) -> None:
    try:
        ensure_pattern(name)
    except InvalidTrigger as error:
        raise InvalidEvent("name", error.problem) from None
