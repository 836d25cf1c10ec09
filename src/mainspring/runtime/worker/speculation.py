"""Speculative starts: what an idle worker claims begins while its claim is being committed.

The disk, or a standby, is most of what a lone job waits for. So its handler begins as soon as the
claim is written, and until the commit is confirmed nothing leaves the worker that builds on it:
reports wait, and a handler that can touch its job begins only then. A claim that came to nothing
left the job queued; its handler is ended, and nothing is said of it.

    claim ─rows─▶ begin ── handler runs ──▶ report waits ─▶ sent
              └── commit ──────────────────────────┘
"""

import asyncio
from collections.abc import Container, Iterable, Sequence

from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.store.attempts import Report

# More than these are no lone job, and then a single statement is better for all the others.
_FEW = 10


class SpeculativeStarts:
    """The jobs of one worker whose claim may still come to nothing; those of one claim at most.

    Only what is `known` here begins so: the definitions of others are to be looked up first.
    """

    def __init__(self, known: Container[str] = ()) -> None:
        self._known = known
        self._jobs: dict[Report, ClaimedJob] = {}
        self._is_resolved = asyncio.Event()
        self._is_resolved.set()

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
