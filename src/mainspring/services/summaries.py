"""Use cases of figures: how the jobs of a tenant stand."""

import asyncio
import time
from datetime import UTC, datetime

from mainspring.db.sessions import Session
from mainspring.domain.jobs.model import FINAL_STATES
from mainspring.domain.summaries import Summary
from mainspring.domain.types import JobState, TenantId
from mainspring.store import tallies as store

_FRESH_SECONDS = 1.0
_MOST_KEPT = 1000


async def summarize(
    session: Session, tenant_id: TenantId | None, *, created_by: str | None = None
) -> Summary:
    """Live jobs are counted; of ended ones the tallies are read, however many there are. Of all
    tenants if none is given. The tallies do not say who created a job, so the states of ended jobs
    are left out where only those of one creator are asked for."""
    today = datetime.now(UTC).date()
    live = await store.live_counts(session, tenant_id, created_by)
    ended = {} if created_by else await store.ended_counts(session, tenant_id)
    newly = {} if created_by else await store.ended_counts(session, tenant_id, today)
    counts = {each.state: each.jobs for each in live} | ended
    ready = [each.ready_since for each in live if each.ready_since is not None]
    final = () if created_by else FINAL_STATES
    return Summary(
        counts={
            state: counts.get(state, 0)
            for state in JobState
            if state in final or state not in FINAL_STATES
        },
        today={state: newly.get(state, 0) for state in JobState if state in final},
        waiting=sum(each.waiting for each in live if each.state is JobState.QUEUED),
        oldest_ready_at=min(ready, default=None),
    )


class SummaryBook:
    """Figures of a moment ago: however many ask, a tenant's are taken once a second."""

    def __init__(self) -> None:
        self._known: dict[tuple[str | None, str | None], tuple[float, Summary]] = {}
        self._asked: dict[tuple[str | None, str | None], asyncio.Lock] = {}

    async def get(
        self, session: Session, tenant_id: TenantId | None, *, created_by: str | None = None
    ) -> Summary:
        key = (tenant_id, created_by)
        async with self._asked.setdefault(key, asyncio.Lock()):
            since, summary = self._known.get(key, (0.0, None))
            if summary is None or time.monotonic() - since > _FRESH_SECONDS:
                summary = await summarize(session, tenant_id, created_by=created_by)
                if len(self._known) >= _MOST_KEPT:
                    self._known.clear()
                self._known[key] = (time.monotonic(), summary)
        if len(self._asked) > _MOST_KEPT:
            self._asked.clear()
        return summary
