"""Jobs that are enqueued by key, for definitions whose code is elsewhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mainspring.db.database import Database
from mainspring.db.tenant_sessions import Acting
from mainspring.domain.errors import UnknownDefinition
from mainspring.domain.flows import Step
from mainspring.domain.jobs.options import EnqueueOptions
from mainspring.domain.types import JobId, TenantId
from mainspring.services import definitions, flows, jobs
from mainspring.services.schemas import SchemaBook
from mainspring.services.secrets import seal_bulk, seal_request
from mainspring.store import jobs as store


class Submissions:
    """Knows the schemas of definitions as they were a few seconds ago."""

    def __init__(self) -> None:
        self._schemas = SchemaBook({})

    async def submit(
        self,
        database: Acting,
        key: str,
        payload: object,
        *,
        options: EnqueueOptions,
        digest: bytes,
    ) -> tuple[JobId, bool]:
        """The job's id, and whether it is new. The digest is that of the caller's token."""
        settings = database.settings
        request = jobs.plan_enqueue(key, payload, options, limit=settings.max_payload_bytes)
        await self._schemas.aensure(database, key, (payload,))
        if paths := self._schemas.secret_paths(key):
            request = seal_request(request, payload, paths, settings=settings)
        call = store.enqueue_as(digest, key, request.payload, options=options)
        async with _suggesting(database):
            ((job_id, is_new),) = await database.arun_entering(call)
        return job_id, is_new

    async def submit_many(
        self,
        database: Database,
        key: str,
        payloads: list[dict[str, Any]],
        *,
        options: EnqueueOptions,
        dedupe_keys: list[str | None] | None = None,
    ) -> list[JobId]:
        settings = database.settings
        bulk = jobs.plan_bulk(
            key, payloads, options, limit=settings.max_payload_bytes, dedupe_keys=dedupe_keys
        )
        await self._schemas.aensure(database, key, payloads)
        if paths := self._schemas.secret_paths(key):
            bulk = seal_bulk(bulk, payloads, paths, settings=settings)
        async with _suggesting(database):
            return await jobs.aenqueue_bulk(database, bulk)

    async def submit_flow(
        self, database: Database, name: str, steps: list[Step], *, tenant_id: TenantId
    ) -> tuple[int, dict[str, JobId]]:
        """The flow's id, and its jobs by the names of their steps."""
        settings = database.settings
        ordered = flows.ordered(name, steps, limit=settings.max_payload_bytes)
        # Before, as nothing can be asked in a transaction that was refused something.
        await definitions.ensure_known(database.arun, {step.definition: None for step in ordered})
        for step in ordered:
            await self._schemas.aensure(database, step.definition, (step.payload,))
        call = flows.plan(
            name,
            ordered,
            tenant_id,
            secret_paths=self._schemas.secret_paths,
            settings=settings,
        )
        ((flow_id, job_ids),) = await database.arun(call)
        pairs = zip(ordered, job_ids, strict=True)
        return flow_id, {step.name: JobId(job_id) for step, job_id in pairs}


@asynccontextmanager
async def _suggesting(database: Database) -> AsyncIterator[None]:
    """Say which definition may have been meant, where there is none of the key."""
    try:
        yield
    except UnknownDefinition as error:
        raise await definitions.unknown(database, error.key) from None
