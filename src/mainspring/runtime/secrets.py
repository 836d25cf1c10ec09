"""The secrets of a job that runs, or of a schedule that is looked at: real for the code that works
with them, hidden from everyone else."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import orjson

from mainspring import telemetry
from mainspring.db.pool import AsyncPool
from mainspring.db.sql_errors import translated
from mainspring.domain.definitions import Handler
from mainspring.domain.errors.secrets import UnreadableSecret
from mainspring.domain.jobs.outcomes import AttemptFailed
from mainspring.domain.secrets.paths import Path, secrets_in
from mainspring.domain.secrets.redaction import NO_SECRETS, Redactor
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.services.payloads import PayloadRules
from mainspring.services.secrets import KeyRing, Owner, key_ring
from mainspring.settings import Settings
from mainspring.store import secrets as store
from mainspring.store.due_schedules import DueSchedule


@contextmanager
def decrypted(job: ClaimedJob, handler: Handler, keys: KeyRing) -> Iterator[None]:
    """The job has its real payload, and a redactor that knows what must not be seen of it.

    Raises UnreadableSecret where no key will ever fit, AttemptFailed where another worker's may.
    """
    try:
        real = keys.decrypt(job.payload(), Owner(job.tenant_id, job.definition))
    except UnreadableSecret as error:
        if error.key_id is None:
            raise
        raise AttemptFailed(str(error)) from None
    if real.is_changed:
        job.payload_text = orjson.dumps(real.payload).decode()
    job.redactor = Redactor(real.secrets | secrets_in(real.payload, handler.secret_paths))
    with telemetry.hiding(job.redactor):
        yield


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

    async def rules(self, definition: str, payload: object) -> PayloadRules:
        """Those that a payload is encrypted by; its schema is left to the worker."""
        if not self._keys or not payload:
            return PayloadRules()
        return PayloadRules(secret_paths=await self._paths(definition))

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
