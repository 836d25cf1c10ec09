"""What definitions ask of payloads, as a scheduler has to know it when it fires."""

import asyncio
import time
from typing import NamedTuple

from mainspring.db.pool import AsyncPool
from mainspring.db.sql_errors import translated
from mainspring.domain.templates import has_template
from mainspring.services.payloads import PayloadRules
from mainspring.services.schemas import rules_of
from mainspring.services.secrets import holds_encrypted
from mainspring.store import definitions
from mainspring.store.due_schedules import DueSchedule

_FRESH_SECONDS = 2.0


class StoredRules(NamedTuple):
    """The rules of a definition, and what stands for its schema."""

    rules: PayloadRules = PayloadRules()
    schema_key: str | None = None


class DefinitionRules:
    """The rules of definitions as they were a moment ago."""

    def __init__(self, pool: AsyncPool) -> None:
        self._pool = pool
        self._known: dict[str, tuple[float, StoredRules]] = {}

    async def find(self, key: str) -> PayloadRules:
        """There are none for a definition that is not there."""
        return (await self._find(key)).rules

    async def fitting_schema(self, due: DueSchedule) -> str | None:
        """Stands for the schema that the payload of a schedule fits at every slot, so that it need
        not be checked again; None if there is no such thing."""
        spec = due.spec
        if spec.launcher is not None or has_template(spec.payload):
            return None
        if holds_encrypted(spec.payload):
            return None
        found = await self._find(spec.definition)
        schema = found.rules.schema
        if schema is not None and not await asyncio.to_thread(schema.fits, dict(spec.payload)):
            return None
        return found.schema_key

    async def _find(self, key: str) -> StoredRules:
        read_at, rules = self._known.get(key, (float("-inf"), StoredRules()))
        if time.monotonic() - read_at >= _FRESH_SECONDS:
            rules = await self._read(key)
            self._known[key] = (time.monotonic(), rules)
        return rules

    async def _read(self, key: str) -> StoredRules:
        async with self._pool.connection() as connection:
            with translated():
                found = await definitions.find_schemas(connection, key)
        if found is None:
            return StoredRules()
        return StoredRules(rules_of(key, found.arg_schema, found.others), found.schema_key)
