"""Use cases of flows."""

from collections.abc import Callable, Sequence

import orjson

from mainspring.db.calls import Call
from mainspring.db.database import Database
from mainspring.domain.errors import FlowNotFound
from mainspring.domain.flows import FlowJob, FlowSummary, Step, as_facts, in_order
from mainspring.domain.jobs.options import MAX_PAYLOAD_BYTES, ensure_text
from mainspring.domain.secrets.paths import Path
from mainspring.domain.types import JobId, TenantId
from mainspring.services.jobs import encode_payload
from mainspring.services.secrets import Owner, seal_payload
from mainspring.settings import Settings
from mainspring.store import flows as store


def ordered(name: str, steps: Sequence[Step], *, limit: int = MAX_PAYLOAD_BYTES) -> list[Step]:
    """The steps in the order they are enqueued in; raises what is wrong with them."""
    ensure_text("name", name)
    in_line = in_order(steps)
    for step in in_line:
        encode_payload(step.payload, limit)
    return in_line


def plan(
    name: str,
    steps: Sequence[Step],
    tenant_id: TenantId,
    *,
    secret_paths: Callable[[str], tuple[Path, ...]],
    settings: Settings,
) -> Call:
    """The call that enqueues everything; its ids are in the order of the steps."""
    payloads = [
        seal_payload(
            step.payload,
            secret_paths(step.definition),
            Owner(tenant_id, step.definition),
            settings=settings,
        )
        for step in steps
    ]
    text = orjson.dumps(as_facts(steps, payloads)).decode()
    return store.enqueue(tenant_id, name, text)


async def get(database: Database, tenant_id: TenantId, flow_id: int) -> FlowSummary:
    rows = await database.arun(store.get(tenant_id, flow_id))
    if not rows:
        raise FlowNotFound(flow_id)
    return store.read_summary(rows[0])


async def list_flows(
    database: Database, tenant_id: TenantId | None, *, before: int | None, limit: int
) -> list[FlowSummary]:
    """Newest first; of all tenants if none is given."""
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
