"""Events that wait, given to the triggers that match them: one tenant at a time, a few at once.

    read ──▶ for each tenant: matching triggers ──▶ render, in a thread ──▶ lock and write

Nothing is locked while payloads are rendered and checked; an advisory lock only keeps two
dispatchers from doing the same work. What is written is one transaction: the events that still wait
are locked, their jobs enqueued, what came of each trigger recorded, and the events handled. So
whoever dies in the middle has done nothing.

No tenant's events hold up another's. Small events of many tenants are written together; a tenant
whose events are large, slow to render or cannot be written has its turns apart, after the others.
Where events cannot be written together they are written by tenant, then by halves, down to the one
that cannot be; that one is recorded as failed and handled, at once or, where trying again may help,
after a minute. What no event could be written with, such as a missing privilege, fails none: all
wait.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any

import psycopg
from psycopg import AsyncConnection
from psycopg.pq import TransactionStatus

from mainspring import telemetry
from mainspring.domain.events import DispatchOutcome, patterns_for
from mainspring.domain.sqlstates import is_of_the_statement, is_worth_retrying
from mainspring.runtime.dispatcher.rendering import Planned, plan_some
from mainspring.settings import Settings
from mainspring.store import events as store
from mainspring.store import triggers as trigger_store
from mainspring.store.events import Dispatched, Waiting

# A tenant's turn ends with the events that are being written then.
_TURN_SECONDS = 0.25
_SMALL_BYTES = 64 * 1024
_APART_SECONDS = 60.0
_PATIENCE_SECONDS = 60.0
_LOCK_TIMEOUT = "55P03"


@dataclass(slots=True)
class RoundRobin:
    """Dispatches batches of events; serves the tenants in turn where there are more of them than
    a batch can hold."""

    settings: Settings
    after: str = field(default="", init=False)
    _failing_since: dict[int, float] = field(default_factory=dict, init=False)
    _apart_until: dict[str, float] = field(default_factory=dict, init=False)
    _tried: set[int] = field(default_factory=set, init=False)

    async def dispatch(self, connection: AsyncConnection[Any]) -> int:
        """How many events were handled; none means that nothing waits which nobody else holds, or
        that it has to wait for a while."""
        found = await self._dispatch_after(connection)
        if not found and self.after:
            self.after = ""
            found = await self._dispatch_after(connection)
        return found

    async def _dispatch_after(self, connection: AsyncConnection[Any]) -> int:
        # Through a pooler there is no session that could hold advisory locks.
        holds = not self.settings.use_pooler
        self._tried.clear()
        try:
            events = await store.next_events(connection, after=self.after, holds=holds)
            tenants = {event.tenant_id for event in events}
            self.after = max(tenants) if len(tenants) >= store.BATCH else ""
            return await self._dispatch_each(connection, events)
        finally:
            if holds and connection.pgconn.transaction_status == TransactionStatus.IDLE:
                await store.release_events(connection)

    async def _dispatch_each(
        self, connection: AsyncConnection[Any], events: Sequence[Waiting]
    ) -> int:
        """Raises what kept a tenant only if nothing else was done."""
        by_tenant = _by_tenant(events)
        together = [
            event
            for tenant_id, theirs in by_tenant.items()
            for event in theirs
            if not self._is_apart(tenant_id, theirs)
        ]
        handled, problem = 0, None
        for some in (together, *by_tenant.values()):
            try:
                handled += await self._take_turn(connection, some, is_shared=some is together)
            except psycopg.Error as error:
                if connection.closed:
                    raise
                problem = error
        if problem is not None and not handled:
            raise problem
        return handled

    def _is_apart(self, tenant_id: str, events: Sequence[Waiting]) -> bool:
        """Whether the tenant has turns of its own."""
        is_large = sum(len(event.context) for event in events) > _SMALL_BYTES
        return is_large or time.monotonic() < self._apart_until.get(tenant_id, 0.0)

    async def _take_turn(
        self, connection: AsyncConnection[Any], events: Sequence[Waiting], *, is_shared: bool
    ) -> int:
        """Dispatch events of one tenant for a while, or of many; how many were handled."""
        waiting = [event for event in events if event.event_id not in self._tried]
        if not waiting:
            return 0
        matches = await trigger_store.matching(connection, _wanted(waiting))
        handled, until = 0, time.monotonic() + _TURN_SECONDS
        while waiting:
            # In a thread, since large payloads would hold up whatever else this loop serves.
            planned = await asyncio.to_thread(plan_some, waiting, matches, self.settings)
            self._tried.update(each.event.event_id for each in planned)
            handled += await self._write(connection, planned)
            waiting = waiting[len(planned) :]
            if not is_shared and time.monotonic() > until:
                break
            if planned[-1].is_slow:
                slow = planned[-1].event.tenant_id
                self._set_apart(slow)
                waiting = [event for event in waiting if event.tenant_id != slow or not is_shared]
        return handled

    def _set_apart(self, tenant_id: str) -> None:
        now = time.monotonic()
        self._apart_until = {
            known: until for known, until in self._apart_until.items() if until > now
        } | {tenant_id: now + _APART_SECONDS}

    async def _write(self, connection: AsyncConnection[Any], planned: Sequence[Planned]) -> int:
        """How many of the events were handled, by us."""
        try:
            dispatched, count = await _write_together(connection, planned)
        except psycopg.Error as error:
            if connection.closed or is_of_the_statement(error.sqlstate):
                raise
            return await self._write_apart(connection, planned, error)
        for each in planned:
            self._failing_since.pop(each.event.event_id, None)
        if count:
            _log(planned, count, dispatched)
        return count

    async def _write_apart(
        self, connection: AsyncConnection[Any], planned: Sequence[Planned], error: psycopg.Error
    ) -> int:
        """By tenants and then by halves, to find the event that cannot be written and let the
        others go."""
        if len(parts := _parts(planned)) > 1:
            return sum([await self._write(connection, part) for part in parts])
        (failed,) = planned
        self._set_apart(failed.event.tenant_id)
        if self._has_patience(failed.event.event_id, error):
            return 0
        return await _give_up(connection, failed, error)

    def _has_patience(self, event_id: int, error: psycopg.Error) -> bool:
        """Whether to leave the event for another try."""
        if not (is_worth_retrying(error.sqlstate) or error.sqlstate == _LOCK_TIMEOUT):
            return False
        since = self._failing_since.setdefault(event_id, time.monotonic())
        return time.monotonic() - since < _PATIENCE_SECONDS


def _by_tenant(events: Sequence[Waiting]) -> dict[str, list[Waiting]]:
    ordered = sorted(events, key=attrgetter("tenant_id", "event_id"))
    return {key: list(theirs) for key, theirs in groupby(ordered, key=attrgetter("tenant_id"))}


def _parts(planned: Sequence[Planned]) -> list[Sequence[Planned]]:
    """Those of each tenant; two halves of one tenant's; one part if there is but one event."""
    of_tenants = groupby(planned, key=lambda each: each.event.tenant_id)
    parts: list[Sequence[Planned]] = [list(theirs) for _, theirs in of_tenants]
    if len(parts) > 1 or len(planned) == 1:
        return parts
    half = len(planned) // 2
    return [planned[:half], planned[half:]]


def _wanted(events: Sequence[Waiting]) -> set[tuple[str, str]]:
    return {(event.tenant_id, pattern) for event in events for pattern in patterns_for(event.name)}


async def _write_together(
    connection: AsyncConnection[Any], planned: Sequence[Planned]
) -> tuple[list[Dispatched], int]:
    """What came of the events that still wait and that nobody else is writing; their number."""
    async with connection.transaction():
        locked = await store.lock_events(connection, [each.event for each in planned])
        ours = [each for each in planned if each.event.event_id in locked]
        plans = [plan for each in ours for plan in each.plans]
        dispatched = await store.dispatch(connection, sorted(locked), plans) if ours else []
    return dispatched, len(ours)


async def _give_up(connection: AsyncConnection[Any], failed: Planned, error: psycopg.Error) -> int:
    """Record that the triggers of an event failed; only that it is handled, where that fails."""
    event = failed.event
    reason = (error.diag.message_primary or str(error)).strip()
    telemetry.event("event_failed", event_id=event.event_id, tenant=event.tenant_id, error=reason)
    try:
        _, count = await _write_together(connection, [failed.failed(reason)])
    except psycopg.Error:
        if connection.closed:
            raise
        _, count = await _write_together(connection, [Planned(event, [])])
    return count


def _log(planned: Sequence[Planned], count: int, dispatched: Sequence[Dispatched]) -> None:
    failed = [each for each in dispatched if each.outcome == DispatchOutcome.FAILED]
    jobs = [each.job_id for each in dispatched if each.outcome == DispatchOutcome.ENQUEUED]
    tenants = {each.event.event_id: each.event.tenant_id for each in planned}
    telemetry.event(
        "events_dispatched",
        tenants=telemetry.first(sorted(set(tenants.values()))),
        count=count,
        event_ids=telemetry.first(tenants),
        jobs=len(jobs),
        job_ids=telemetry.first(jobs),
        failed=len(failed),
    )
    for each in failed:
        facts = {"tenant": tenants.get(each.event_id), "event_id": each.event_id}
        telemetry.event("trigger_failed", **facts, trigger=each.trigger_name, error=each.error)
