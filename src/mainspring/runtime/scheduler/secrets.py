"""The secrets of a schedule that is evaluated: real for its launcher, hidden from everyone else."""

from dataclasses import replace

from mainspring.db.pool import AsyncPool
from mainspring.db.sql_errors import translated
from mainspring.domain.errors.secrets import UnreadableSecret
from mainspring.domain.secrets.paths import Path, secrets_in
from mainspring.domain.secrets.redaction import NO_SECRETS, Redactor
from mainspring.services.secrets import Owner, key_ring
from mainspring.settings import Settings
from mainspring.store import secrets as store
from mainspring.store.due_schedules import DueSchedule


class ScheduleSecrets:
    """What a scheduler needs to know of the secrets in payloads."""

    def __init__(self, pool: AsyncPool, settings: Settings) -> None:
        self._pool, self._keys = pool, key_ring(settings)

    def decrypted(self, due: DueSchedule) -> DueSchedule:
        """The schedule with its real payload, which a launcher may look at; as it is where the keys
        are not here, since its jobs can do without."""
        owner = Owner(due.spec.tenant_id, due.spec.definition)
        try:
            real = self._keys.decrypt(due.spec.payload, owner)
        except UnreadableSecret:
            return due
        return replace(due, spec=replace(due.spec, payload=real.payload))

    async def shown(self, due: DueSchedule, reason: str) -> str:
        """A reason as people may see it."""
        return (await self.redactor(due)).tail(reason)

    async def redactor(self, due: DueSchedule) -> Redactor:
        """Knows what must not be seen of the payload of a schedule."""
        if not due.spec.payload:
            return NO_SECRETS
        return Redactor(secrets_in(due.spec.payload, await self._paths(due.spec.definition)))

    async def _paths(self, definition: str) -> tuple[Path, ...]:
        async with self._pool.connection() as connection:
            with translated():
                paths = await store.paths_of_definitions(connection, [definition])
        return paths.get(definition, ())
