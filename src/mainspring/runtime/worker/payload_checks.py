"""Payloads that a handler does not take: its job fails, or is left to a worker that takes it.

During a deployment workers have two versions of a handler. A worker that claims a job for the other
one puts it off for some seconds, without an attempt spent, as long as there is a live worker whose
schema the payload fits; or, for an hour after the definition changed, if it fits the definition
itself: the program that declared it may enqueue before the first of its workers starts.
"""

import asyncio
import random
import time
from datetime import timedelta

from mainspring.domain.definitions import Handler
from mainspring.domain.errors import InvalidDefinition, InvalidPayload
from mainspring.domain.jobs.outcomes import Fail, PutOff
from mainspring.domain.schema_costs import MOST_CHECK_STEPS, count_values
from mainspring.domain.schemas import Schema
from mainspring.domain.types import ExecutionMode
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.transactions import AsyncSource
from mainspring.services.payloads import ensure_affordable
from mainspring.store import definitions

_FRESH_SECONDS = 2.0
_MOST_DOUBLED = 3


class PayloadChecks:
    """Holds the payloads of jobs to what their handlers take."""

    def __init__(self, source: AsyncSource) -> None:
        self._source = source
        self._known: dict[str, tuple[float, list[Schema]]] = {}

    async def check(self, job: ClaimedJob, handler: Handler) -> Fail | PutOff | None:
        """What becomes of a job instead of being run; None if the handler takes its payload."""
        try:
            if handler.schema is None:
                return None
            if len(job.payload_text) <= handler.schema.quick_length:
                handler.schema.ensure(job.payload())
            else:
                ensure_affordable(_steps(job, handler.schema))
                await asyncio.to_thread(handler.schema.ensure, job.payload())
        except InvalidPayload as error:
            if handler.mode is ExecutionMode.STORED or not await self._fits_elsewhere(job):
                return Fail(str(error))
            return PutOff(
                f"waits for a worker whose handler takes the payload; this one does not: {error}",
                _delay(job),
            )
        return None

    async def _fits_elsewhere(self, job: ClaimedJob) -> bool:
        payload = job.payload()
        for schema in await self._others(job.definition):
            if _steps(job, schema) > MOST_CHECK_STEPS:
                continue
            if await asyncio.to_thread(schema.fits, payload):
                return True
        return False

    async def _others(self, key: str) -> list[Schema]:
        read_at, schemas = self._known.get(key, (float("-inf"), []))
        if time.monotonic() - read_at >= _FRESH_SECONDS:
            schemas = await self._read(key)
            self._known[key] = (time.monotonic(), schemas)
        return schemas

    async def _read(self, key: str) -> list[Schema]:
        async with self._source.connection() as connection:
            found = await definitions.find_schemas(connection, key)
        if found is None:
            return []
        documents = [*found.others, *([found.arg_schema or {}] if found.is_new else [])]
        try:
            return [Schema(key, document) for document in documents]
        except InvalidDefinition:  # Written by an SQL client.
            return []


def _steps(job: ClaimedJob, schema: Schema) -> int:
    """How many it takes at most to check the payload."""
    return schema.steps_of_a_value * count_values(job.payload_text.encode())


def _delay(job: ClaimedJob) -> timedelta:
    """Longer each time, since there may be few workers that take it, or none yet."""
    earlier = max(job.attempt - 1 - job.failures - job.losses, 0)
    seconds = 2.0 ** min(earlier, _MOST_DOUBLED)
    return timedelta(seconds=seconds * random.uniform(0.5, 1.0))  # noqa: S311 - only jitter
