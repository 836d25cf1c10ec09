"""Events that wait, given to the triggers that match them: a batch, a transaction.

The events are locked, each trigger's payload is rendered and checked, and one statement enqueues
the jobs, writes what came of each trigger, and says that the events are handled. All of it is
committed together or not at all, so whoever dies in the middle has done nothing.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from psycopg import AsyncConnection

from mainspring import telemetry
from mainspring.domain import documents, triggers
from mainspring.domain.errors import InputError
from mainspring.domain.events import DispatchOutcome, patterns_for
from mainspring.domain.jobs.outcomes import clean
from mainspring.domain.triggers import Occurrence
from mainspring.domain.types import TenantId
from mainspring.services.payloads import PayloadRules, prepare
from mainspring.services.schemas import rules_of
from mainspring.services.secrets import Owner
from mainspring.settings import Settings
from mainspring.store import events as store
from mainspring.store import triggers as trigger_store
from mainspring.store.events import Dispatched, Waiting
from mainspring.store.triggers import Match

Plan = dict[str, Any]

_LONGEST_ERROR = 2000


@dataclass(slots=True)
class RoundRobin:
    """Dispatches batches of events; serves the tenants in turn where there are more of them than
    a batch can hold."""

    settings: Settings
    after: str = field(default="", init=False)

    async def dispatch(self, connection: AsyncConnection[Any]) -> int:
        """How many events were handled; none means that nothing waits which nobody else holds."""
        found = await self._dispatch_after(connection)
        if not found and self.after:
            self.after = ""
            found = await self._dispatch_after(connection)
        return found

    async def _dispatch_after(self, connection: AsyncConnection[Any]) -> int:
        async with connection.transaction():
            events = await store.next_events(connection, after=self.after)
            if not events:
                return 0
            matches = await trigger_store.matching(connection, _wanted(events))
            # In a thread, since large payloads would hold up whatever else this loop serves.
            plans = await asyncio.to_thread(_plans, events, matches, self.settings)
            ids = [event.event_id for event in events]
            dispatched = await store.dispatch(connection, ids, plans)
        tenants = {event.tenant_id for event in events}
        self.after = max(tenants) if len(tenants) >= store.BATCH else ""
        _log(events, dispatched)
        return len(events)


def _wanted(events: Sequence[Waiting]) -> set[tuple[str, str]]:
    return {(event.tenant_id, pattern) for event in events for pattern in patterns_for(event.name)}


def _plans(events: Sequence[Waiting], matches: Sequence[Match], settings: Settings) -> list[Plan]:
    """For each event its triggers, in the order they were made."""
    by_pattern: defaultdict[tuple[str, str], list[Match]] = defaultdict(list)
    for match in matches:
        by_pattern[match.tenant_id, match.event].append(match)
    return [plan for event in events for plan in _plans_of(event, by_pattern, settings)]


def _plans_of(
    event: Waiting, by_pattern: Mapping[tuple[str, str], Sequence[Match]], settings: Settings
) -> Iterator[Plan]:
    found = [
        match
        for pattern in patterns_for(event.name)
        for match in by_pattern.get((event.tenant_id, pattern), ())
        if event.replay_trigger in (None, match.name)
    ]
    for match in sorted(found, key=lambda match: match.trigger_id):
        yield {**_facts(event, match), **_rendered(event, match, settings)}


def _facts(event: Waiting, match: Match) -> Plan:
    is_first = event.replays == 0
    return {
        "event_id": event.event_id,
        "replay": event.replays,
        "tenant_id": event.tenant_id,
        "correlation_id": event.correlation_id or f"event:{event.event_id}",
        "trigger_id": match.trigger_id,
        "trigger_name": match.name,
        "definition": match.definition,
        "queue": match.queue,
        "priority": match.priority,
        # Whoever replays an event wants its jobs, however short ago there were some.
        "dedupe_window": match.dedupe_window if is_first else None,
    }


def _rendered(event: Waiting, match: Match, settings: Settings) -> Plan:
    """The payload, or what is wrong with it."""
    try:
        template = documents.read(match.payload)
        prepared = prepare(
            triggers.render(template, _occurrence(event), match.unknown_paths),
            _rules(match.definition, match.version, match.arg_schema),
            Owner(TenantId(event.tenant_id), match.definition),
            settings=settings,
            is_compared=match.dedupe_window is not None,
        )
    except InputError as error:
        return {"error": clean(str(error), limit=_LONGEST_ERROR)}
    except Exception as error:  # noqa: BLE001 - one trigger must not hold up the others
        return {"error": clean(repr(error), limit=_LONGEST_ERROR)}
    return {"payload": prepared.text.decode()}


@lru_cache(maxsize=1)
def _occurrence(event: Waiting) -> Occurrence:
    """Read once for all triggers of an event."""
    return Occurrence(
        event_id=event.event_id,
        name=event.name,
        tenant_id=event.tenant_id,
        emitted_at=event.emitted_at,
        context=documents.read(event.context),
    )


@lru_cache(maxsize=256)
def _rules(key: str, version: int | None, document: str | None) -> PayloadRules:
    """Made once for each version of a definition."""
    if version is None or document is None:
        return PayloadRules()
    return rules_of(key, documents.read(document))


def _log(events: Sequence[Waiting], dispatched: Sequence[Dispatched]) -> None:
    failed = [each for each in dispatched if each.outcome == DispatchOutcome.FAILED]
    jobs = sum(each.outcome == DispatchOutcome.ENQUEUED for each in dispatched)
    telemetry.event("events_dispatched", events=len(events), jobs=jobs, failed=len(failed))
    for each in failed:
        telemetry.event(
            "trigger_failed", trigger=each.trigger_name, event_id=each.event_id, error=each.error
        )
