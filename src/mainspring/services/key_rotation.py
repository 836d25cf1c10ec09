"""A new key for what is encrypted: payloads are read with any key and written with the first."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import orjson

from mainspring.db.calls import Call
from mainspring.db.database import Database
from mainspring.domain.errors import SettingsError
from mainspring.domain.errors.secrets import UnreadableSecret
from mainspring.services.secrets import KeyRing, Owner, key_ring
from mainspring.store import secrets as store
from mainspring.store.secrets import EncryptedJob, EncryptedSchedule

_FIRST = -(2**63)
_PASSES = 3

Read = Callable[[int, int], Call]
Write = Callable[[Sequence[EncryptedJob], Sequence[str]], Call]


@dataclass(slots=True)
class Rotation:
    """What was encrypted anew; `left` was held by someone and needs another round, `unreadable`
    is under a key that is not set."""

    jobs: int = 0
    finished: int = 0
    schedules: int = 0
    left: int = 0
    unreadable: int = 0


async def rotate(database: Database, *, batch: int = 500) -> Rotation:
    """Encrypt everything under the first key, in small transactions."""
    keys = key_ring(database.settings)
    if not keys:
        raise SettingsError("no encryption keys are configured; set MAINSPRING_ENCRYPTION_KEYS")
    rotator = _Rotator(database, keys, batch)
    for _ in range(_PASSES):
        rotator.done.left = rotator.done.unreadable = 0
        rotator.done.jobs += await rotator.jobs(store.encrypted_jobs, store.reencrypt_jobs)
        rotator.done.finished += await rotator.jobs(
            store.encrypted_history, store.reencrypt_history
        )
        rotator.done.schedules += await rotator.schedules()
        if not rotator.done.left:
            break
    return rotator.done


class _Rotator:
    """One rotation on its way."""

    def __init__(self, database: Database, keys: KeyRing, batch: int) -> None:
        self.done = Rotation()
        self._database, self._keys, self._batch = database, keys, batch

    async def jobs(self, read: Read, write: Write) -> int:
        after, changed = _FIRST, 0
        while rows := await self._database.arun(read(after, self._batch)):
            after = rows[-1][0]
            pairs = [(job, self._renewed(job)) for job in (EncryptedJob(*row) for row in rows)]
            due = [(job, text) for job, text in pairs if text is not None]
            if due:
                call = write([job for job, _ in due], [text for _, text in due])
                ((count,),) = await self._database.arun(call)
                changed += count
                self.done.left += len(due) - count
        return changed

    async def schedules(self) -> int:
        after, changed = _FIRST, 0
        while rows := await self._database.arun(store.encrypted_schedules(after, self._batch)):
            after = rows[-1][0]
            due = [
                (schedule, payload, declared)
                for schedule in (EncryptedSchedule(*row) for row in rows)
                for payload, declared in (self._renewed_both(schedule),)
                if payload is not None or declared is not None
            ]
            if due:
                call = store.reencrypt_schedules(
                    [schedule for schedule, _, _ in due],
                    [payload or schedule.payload for schedule, payload, _ in due],
                    [declared for _, _, declared in due],
                )
                count = len(await self._database.arun(call))
                changed += count
                self.done.left += len(due) - count
        return changed

    def _renewed_both(self, schedule: EncryptedSchedule) -> tuple[str | None, str | None]:
        payload = self._renewed(EncryptedJob(*schedule[:4]))
        if schedule.declared is None or schedule.declared_definition is None:
            return payload, None
        owner = (schedule.id, schedule.tenant_id, schedule.declared_definition)
        return payload, self._renewed(EncryptedJob(*owner, schedule.declared))

    def _renewed(self, encrypted: EncryptedJob) -> str | None:
        """The payload under the first key; None where it is so already, or cannot be."""
        payload = orjson.loads(encrypted.payload)
        try:
            renewed = self._keys.renew(payload, Owner(encrypted.tenant_id, encrypted.definition))
        except UnreadableSecret:
            self.done.unreadable += 1
            return None
        return None if renewed == payload else orjson.dumps(renewed).decode()
