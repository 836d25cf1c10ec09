"""Speculative starts: what an idle worker claims begins while its claim is being committed.

The disk, or a standby, is most of what a lone job waits for. So its handler begins as soon as the
claim is written, and until the commit is confirmed nothing leaves the worker that builds on it:
reports wait, and a handler that can touch its job begins only then. A claim that came to nothing
left the job queued; its handler is ended, and nothing is said of it.

A worker may be paused in the middle, with a claim that holds its jobs and belongs to nobody once
the lease is over. So the server ends the transaction when it hears nothing for a quarter of the
lease; it is begun only while the lease has longer than that to run, and not committed after it.

    claim ─rows─▶ begin ── handler runs ──▶ report waits ─▶ sent
              └── commit ──────────────────────────┘
"""

import asyncio
from collections.abc import AsyncIterator, Container, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection

from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.runtime.worker.lease import Lease
from mainspring.store.attempts import Report

# More than these are no lone job, and then a single statement is better for all the others.
_FEW = 10
# Of the lease: how long a claim may be open in silence, and what has to be left beyond that.
_OPEN, _MARGIN = 1 / 4, 1 / 8


class LeaseEnded(psycopg.OperationalError):
    """The lease ended before the claim was committed, so it must come to nothing."""


class SpeculativeStarts:
    """The jobs of one worker whose claim may still come to nothing; those of one claim at most.

    Only what is `known` here begins so: the definitions of others are to be looked up first.
    """

    def __init__(
        self, lease: Lease, known: Container[str] = (), *, use_pooler: bool = False
    ) -> None:
        self._lease = lease
        self._known = known
        self._use_pooler = use_pooler
        self._open_seconds = lease.seconds * _OPEN
        # In one round trip.
        self._begin_sql = (
            "begin; set local idle_in_transaction_session_timeout ="
            f" {int(self._open_seconds * 1000)}"
        )
        self._jobs: dict[Report, ClaimedJob] = {}
        self._is_resolved = asyncio.Event()
        self._is_resolved.set()

    @property
    def is_possible(self) -> bool:
        """Whether the lease lasts for longer than a claim can be open. Through a pooler a
        transaction takes a round trip more, and that would cost what is gained."""
        lasts = self._lease.has_left(self._open_seconds + self._lease.seconds * _MARGIN)
        return lasts and not self._use_pooler

    @asynccontextmanager
    async def transaction(self, connection: AsyncConnection[Any]) -> AsyncIterator[None]:
        """Commits at the end, unless the lease is over; raises LeaseEnded then."""
        try:
            await connection.execute(self._begin_sql, prepare=False)
            yield
            if not self._lease.has_left():
                raise LeaseEnded("the lease ended before the claim was committed")
            await connection.commit()
        except psycopg.Error:
            if not connection.closed:
                await connection.rollback()
            raise
        except BaseException:
            # The worker stops. Nobody may be there to answer a rollback.
            await connection.close()
            raise

    def allows(self, jobs: Sequence[ClaimedJob]) -> bool:
        """Whether these may begin before their claim is committed."""
        return len(jobs) <= _FEW and all(job.definition in self._known for job in jobs)

    def begin(self, jobs: Iterable[ClaimedJob]) -> None:
        for job in jobs:
            job.is_speculative = True
            self._jobs[job.report] = job
        if self._jobs:
            self._is_resolved.clear()

    def confirm(self) -> None:
        """The claim is committed."""
        for job in self._jobs.values():
            job.is_speculative = False
        self._jobs.clear()
        self._is_resolved.set()

    async def resolved(self) -> None:
        """Wait until every claim is committed or known to have come to nothing."""
        if not self._is_resolved.is_set():
            await self._is_resolved.wait()

    def job_ids(self) -> set[int]:
        return {report.job_id for report in self._jobs}

    def keep(self, found: Iterable[Report]) -> set[Report]:
        """Those of the claims found in the database that have begun: they count."""
        kept = self._jobs.keys() & set(found)
        for report in kept:
            self._jobs.pop(report).is_speculative = False
        return kept

    def take_lost(self) -> list[ClaimedJob]:
        """Those whose claim came to nothing, which have to be disowned at once."""
        lost = list(self._jobs.values())
        self.confirm()
        return lost
