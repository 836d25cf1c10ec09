"""A new key for what is encrypted: payloads are read with any key and written with the first.

A batch that the database refuses because of one of its rows is written by halves, down to that row.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import orjson
import psycopg

from mainspring.db.sessions import ServiceSession, Session
from mainspring.domain.batches import halves
from mainspring.domain.errors import SettingsError
from mainspring.domain.errors.secrets import UnreadableSecret
from mainspring.domain.sqlstates import is_of_a_row
from mainspring.services.secrets import KeyRing, Owner, key_ring
from mainspring.store import secrets as store
from mainspring.store.secrets import EncryptedJob, EncryptedSchedule, Reencrypted

_FIRST = -(2**63)
_PASSES = 3
_MOST_NAMED = 20

Read = Callable[[Session, int, int], Awaitable[list[EncryptedJob]]]
Write = Callable[[Session, Sequence[Reencrypted]], Awaitable[int]]
RenewedSchedule = tuple[EncryptedSchedule, str | None, str | None]
T = TypeVar("T")


@dataclass(slots=True)
class Rotation:
    """What was encrypted anew; `left` was held by someone and needs another round, `unreadable`
    is under a key that is not set, or was changed; `refused` cannot be written. The first of those
    are named in `unreadable_rows` and, with the reasons, in `refused_rows`."""

    jobs: int = 0
    finished: int = 0
    schedules: int = 0
    left: int = 0
    unreadable: int = 0
    unreadable_rows: list[str] = field(default_factory=list)
    refused: int = 0
    refused_rows: list[str] = field(default_factory=list)


async def rotate(session: ServiceSession, *, batch: int = 500) -> Rotation:
    """Encrypt everything under the first key, in small transactions."""
    keys = key_ring(session.settings)
    if not keys:
        raise SettingsError("no encryption keys are configured; set MAINSPRING_ENCRYPTION_KEYS")
    rotator = _Rotator(session, keys, batch)
    for _ in range(_PASSES):
        rotator.start_over()
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

    def __init__(self, session: Session, keys: KeyRing, batch: int) -> None:
        self.done = Rotation()
        self._session, self._keys, self._batch = session, keys, batch

    def start_over(self) -> None:
        """What is left from the pass before may go now."""
        self.done.left = self.done.unreadable = self.done.refused = 0
        self.done.unreadable_rows, self.done.refused_rows = [], []

    async def jobs(self, read: Read, write: Write) -> int:
        after, changed = _FIRST, 0
        while jobs := await read(self._session, after, self._batch):
            after = jobs[-1].id
            due = [each for job in jobs if (each := self._renewed(job, f"job {job.id}"))]
            changed += await self._write(
                due, lambda some: write(self._session, some), lambda each: f"job {each.row.id}"
            )
        return changed

    async def schedules(self) -> int:
        after, changed = _FIRST, 0
        while schedules := await store.encrypted_schedules(self._session, after, self._batch):
            after = schedules[-1].id
            due = [
                (schedule, payload, declared)
                for schedule in schedules
                for payload, declared in (self._renewed_both(schedule),)
                if payload is not None or declared is not None
            ]
            changed += await self._write(
                due, self._write_schedules, lambda each: f"schedule {each[0].id}"
            )
        return changed

    async def _write_schedules(self, due: Sequence[RenewedSchedule]) -> int:
        return await store.reencrypt_schedules(
            self._session,
            [schedule for schedule, _, _ in due],
            [payload or schedule.payload for schedule, payload, _ in due],
            declared=[declared for _, _, declared in due],
        )

    async def _write(
        self,
        due: Sequence[T],
        write: Callable[[Sequence[T]], Awaitable[int]],
        name_of: Callable[[T], str],
    ) -> int:
        """How many rows were changed; the others are left or refused."""
        if not due:
            return 0
        try:
            count = await write(due)
        except psycopg.Error as error:
            if not is_of_a_row(error.sqlstate):
                raise
            if len(due) == 1:
                self._note_refused(f"{name_of(due[0])}: {error.diag.message_primary or error}")
                return 0
            return sum([await self._write(half, write, name_of) for half in halves(due)])
        self.done.left += len(due) - count
        return count

    def _renewed_both(self, schedule: EncryptedSchedule) -> tuple[str | None, str | None]:
        name = f"schedule {schedule.id}"
        payload = self._renewed(EncryptedJob(*schedule[:4]), name)
        if schedule.declared is None or schedule.declared_definition is None:
            return payload and payload.after, None
        owner = (schedule.id, schedule.tenant_id, schedule.declared_definition)
        # What was equal stays so, or it would look as if someone had changed the schedule.
        known = payload.after if payload else schedule.payload
        declared = self._renewed(EncryptedJob(*owner, schedule.declared), name, known=known)
        return payload and payload.after, declared and declared.after

    def _renewed(
        self, encrypted: EncryptedJob, name: str, *, known: str | None = None
    ) -> Reencrypted | None:
        """The payload under the first key; None where it is so already, or cannot be."""
        owner = Owner(encrypted.tenant_id, encrypted.definition)
        try:
            payload = orjson.loads(encrypted.payload)
            other = None if known is None else orjson.loads(known)
            renewed = self._keys.renew(payload, owner, known=other)
            if renewed == payload:
                return None
            was, now = (
                self._keys.compared(payload, owner, key_id=key) for key in (None, self._keys.first)
            )
            texts = (orjson.dumps(each).decode() for each in (renewed, was, now))
            return Reencrypted(encrypted, *texts)
        except (UnreadableSecret, orjson.JSONDecodeError, orjson.JSONEncodeError):
            self._note_unreadable(name)
            return None

    def _note_unreadable(self, name: str) -> None:
        if name in self.done.unreadable_rows:
            return
        self.done.unreadable += 1
        if len(self.done.unreadable_rows) < _MOST_NAMED:
            self.done.unreadable_rows.append(name)

    def _note_refused(self, row: str) -> None:
        self.done.refused += 1
        if len(self.done.refused_rows) < _MOST_NAMED:
            self.done.refused_rows.append(row)
