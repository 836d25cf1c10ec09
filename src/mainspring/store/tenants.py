"""Statements on tenants."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

import orjson

from mainspring.db.sessions import Session, fetch_all, fetch_one
from mainspring.db.statements import load
from mainspring.domain.tenants import TenantContents, TenantState
from mainspring.domain.types import JobId
from mainspring.store.rows.records import read_record

_STATEMENTS = load("tenants")


class Deletion(NamedTuple):
    """A tenant that is to be deleted, and in whose name."""

    tenant_id: str
    actor: str
    identity: str | None


class Deleted(NamedTuple):
    """How many were deleted of what, how many jobs still run, and whether all is gone."""

    what: str | None
    number: int
    running: int
    is_done: bool


async def create(
    session: Session, tenant_id: str, *, weight: int, max_running: int | None, zone: str
) -> bool:
    """False if the name is taken."""
    params = {"tenant_id": tenant_id, "weight": weight, "max_running": max_running, "zone": zone}
    return await fetch_one(session, _STATEMENTS["create_tenant"].sql, params) is not None


async def update(session: Session, tenant_id: str, changes: Mapping[str, Any]) -> bool:
    """False if there is no such tenant."""
    params = {"tenant_id": tenant_id, "changes": orjson.dumps(changes).decode()}
    return await fetch_one(session, _STATEMENTS["update_tenant"].sql, params) is not None


async def get(session: Session, tenant_id: str) -> TenantState | None:
    row = await fetch_one(session, _STATEMENTS["get_tenant"].sql, {"tenant_id": tenant_id})
    return None if row is None else _state(row[0])


async def is_known(session: Session, tenant_id: str) -> bool:
    params = {"tenant_id": tenant_id}
    return await fetch_one(session, _STATEMENTS["find_tenant"].sql, params) is not None


async def contents(session: Session, tenant_id: str) -> TenantContents:
    ((text,),) = await fetch_all(
        session, _STATEMENTS["tenant_contents"].sql, {"tenant_id": tenant_id}
    )
    return read_record(TenantContents, orjson.loads(text))


async def start_deletion(session: Session, tenant_id: str) -> JobId:
    """Disable the tenant and enqueue the job that deletes it."""
    params = {"tenant_id": tenant_id}
    ((job_id,),) = await fetch_all(session, _STATEMENTS["start_tenant_deletion"].sql, params)
    return JobId(job_id)


async def get_deletion(session: Session, job_id: JobId) -> Deletion | None:
    """None if nobody asked for it in the one way that there is."""
    row = await fetch_one(session, _STATEMENTS["get_tenant_deletion"].sql, {"job_id": job_id})
    return None if row is None else Deletion(*row)


async def delete_some(session: Session, asked: Deletion, *, most: int) -> Deleted:
    params = {**asked._asdict(), "most": most}
    (row,) = await fetch_all(session, _STATEMENTS["delete_from_tenant"].sql, params)
    return Deleted(*row)


async def zone(session: Session, tenant_id: str) -> str:
    """The zone of schedules that name none; UTC if there is no such tenant."""
    row = await fetch_one(session, _STATEMENTS["tenant_zone"].sql, {"tenant_id": tenant_id})
    return "UTC" if row is None else str(row[0])


async def list_tenants(session: Session, *, after: str | None, limit: int) -> list[TenantState]:
    params = {"after": after, "limit": limit}
    rows = await fetch_all(session, _STATEMENTS["list_tenants"].sql, params)
    return [_state(text) for (text,) in rows]


async def names(session: Session) -> list[str]:
    return [name for (name,) in await fetch_all(session, _STATEMENTS["tenant_names"].sql, {})]


def _state(text: str) -> TenantState:
    facts = orjson.loads(text)
    facts["created_at"] = datetime.fromisoformat(facts["created_at"]).astimezone(UTC)
    return read_record(TenantState, facts)
