"""Use cases of flows."""

from collections.abc import Sequence

import orjson

from mainspring.db.access import Database
from mainspring.db.calls import Call
from mainspring.domain.errors import FlowNotFound
from mainspring.domain.flows import FlowJob, FlowSummary, Step, as_facts, in_order
from mainspring.domain.jobs import MAX_PAYLOAD_BYTES, ensure_text
from mainspring.domain.types import JobId, TenantId
from mainspring.services.jobs import encode_payload
from mainspring.store import flows as store


def plan(
    name: str, steps: Sequence[Step], tenant_id: TenantId, *, limit: int = MAX_PAYLOAD_BYTES
) -> tuple[Call, list[Step]]:
    """The call that enqueues everything, and the steps in the order of the ids it answers with."""
    ensure_text("name", name)
    ordered = in_order(steps)
    for step in ordered:
        encode_payload(step.payload, limit)
    text = orjson.dumps(as_facts(ordered)).decode()
    return store.enqueue(tenant_id, name, text), ordered


async def get(database: Database, tenant_id: TenantId, flow_id: int) -> FlowSummary:
    rows = await database.arun(store.get(tenant_id, flow_id))
    if not rows:
        raise FlowNotFound(flow_id)
    return store.read_summary(rows[0])


async def list_flows(
    database: Database, tenant_id: TenantId, *, before: int | None, limit: int
) -> list[FlowSummary]:
    rows = await database.arun(store.list_flows(tenant_id, before=before, limit=limit))
    return [store.read_summary(row) for row in rows]


async def jobs_of(
    database: Database, tenant_id: TenantId, flow_id: int, *, after: JobId | None, limit: int
) -> list[FlowJob]:
    rows = await database.arun(store.jobs_of(tenant_id, flow_id, after=after, limit=limit))
    return [store.read_job(row) for row in rows]


async def cancel(database: Database, tenant_id: TenantId, flow_id: int, *, reason: str) -> int:
    """How many jobs were live."""
    ensure_text("reason", reason)
    ((count,),) = await database.arun(store.cancel(tenant_id, flow_id, reason))
    return int(count)


async def retry(database: Database, tenant_id: TenantId, flow_id: int) -> int:
    """How many jobs are back."""
    ((count,),) = await database.arun(store.retry(tenant_id, flow_id))
    return int(count)
