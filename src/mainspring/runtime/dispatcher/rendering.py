"""What becomes of events: for each trigger that matches one, a payload or what is wrong with it.

No database here, and no transaction waits meanwhile. An event costs what `domain/triggers.py`
allows, and no more; whatever goes over is a failure of its trigger.
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mainspring.domain import documents, triggers
from mainspring.domain.errors import InputError
from mainspring.domain.events import patterns_for
from mainspring.domain.jobs.outcomes import clean
from mainspring.domain.template_sources import JsonSource
from mainspring.domain.triggers import MOST_TRIGGERS, Occurrence
from mainspring.domain.types import TenantId
from mainspring.services.payloads import PayloadRules, prepare
from mainspring.services.schemas import rules_of
from mainspring.services.secrets import Owner
from mainspring.settings import Settings
from mainspring.store.events import Waiting
from mainspring.store.triggers import Match

Plan = dict[str, Any]

_LONGEST_ERROR = 2000
# What is written together: a transaction that is soon over.
_MOST_PLANS = 500
_MOST_BYTES = 4 * 1024 * 1024
_MOST_SECONDS = 0.25
_SLOW_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Planned:
    """An event, and for each of its triggers what is to be written."""

    event: Waiting
    plans: Sequence[Plan]
    is_slow: bool = False

    @property
    def size(self) -> int:
        return sum(len(plan.get("payload", "")) for plan in self.plans)

    def failed(self, reason: str) -> "Planned":
        """The same as a failure of each trigger."""
        error = clean(reason, limit=_LONGEST_ERROR)
        plans = [{**plan, "error": error} for plan in self.plans]
        for plan in plans:
            plan.pop("payload", None)
        return Planned(self.event, plans)


def plan_some(
    events: Sequence[Waiting], matches: Sequence[Match], settings: Settings
) -> list[Planned]:
    """The first events, as many as can be written together; one at least, and none after one that
    was slow."""
    by_pattern: defaultdict[tuple[str, str], list[Match]] = defaultdict(list)
    for match in matches:
        by_pattern[match.tenant_id, match.event].append(match)
    made: list[Planned] = []
    plans = size = 0
    began = time.monotonic()
    for event in events:
        planned = _planned(event, by_pattern, settings)
        plans, size = plans + len(planned.plans), size + planned.size
        if made and (plans > _MOST_PLANS or size > _MOST_BYTES):
            break
        made.append(planned)
        if planned.is_slow or time.monotonic() - began > _MOST_SECONDS:
            break
    return made


def _planned(
    event: Waiting, by_pattern: Mapping[tuple[str, str], Sequence[Match]], settings: Settings
) -> Planned:
    began = time.thread_time()
    plans = list(_plans_of(event, by_pattern, settings))
    return Planned(event, plans, is_slow=time.thread_time() - began > _SLOW_SECONDS)


def _plans_of(
    event: Waiting, by_pattern: Mapping[tuple[str, str], Sequence[Match]], settings: Settings
) -> Iterator[Plan]:
    """In the order the triggers were made."""
    found = [
        match
        for pattern in patterns_for(event.name)
        for match in by_pattern.get((event.tenant_id, pattern), ())
        if event.replay_trigger in (None, match.name)
    ]
    found.sort(key=lambda match: match.trigger_id)
    source = _source(event, settings)
    for match in found[:MOST_TRIGGERS]:
        yield {**_facts(event, match), **_rendered(event, match, source, settings=settings)}
    for match in found[MOST_TRIGGERS : MOST_TRIGGERS + 1]:
        error = (
            f"the event has more than {MOST_TRIGGERS} triggers; this one and later ones are not run"
        )
        yield {**_facts(event, match), "error": error}


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


def _rendered(
    event: Waiting, match: Match, source: JsonSource | str, *, settings: Settings
) -> Plan:
    """The payload, or what is wrong with it."""
    if isinstance(source, str):
        return {"error": source}
    try:
        source.spend(len(match.payload))
        largest = settings.max_payload_bytes
        template = documents.read(match.payload)
        prepared = prepare(
            triggers.render(template, source, match.unknown_paths, largest=largest),
            _rules(match.definition, match.arg_schema, match.other_schemas),
            Owner(TenantId(event.tenant_id), match.definition),
            settings=settings,
            is_compared=match.dedupe_window is not None,
        )
    except Exception as error:  # noqa: BLE001 - one trigger must not hold up the others
        return {"error": _reason(error)}
    return {"payload": prepared.text.decode()}


def _source(event: Waiting, settings: Settings) -> JsonSource | str:
    """Read once for all triggers of the event; or what is wrong with it."""
    try:
        occurrence = Occurrence(
            event_id=event.event_id,
            name=event.name,
            tenant_id=event.tenant_id,
            emitted_at=event.emitted_at,
            context=documents.read(event.context),
        )
        return occurrence.source(settings.max_payload_bytes)
    except Exception as error:  # noqa: BLE001 - one event must not hold up the others
        return _reason(error)


def _reason(error: Exception) -> str:
    said = str(error) if isinstance(error, InputError) else repr(error)
    return clean(said, limit=_LONGEST_ERROR)


@lru_cache(maxsize=256)
def _rules(key: str, document: str | None, others: str | None) -> PayloadRules:
    """Made once for each set of schemas."""
    if document is None:
        return PayloadRules()
    return rules_of(key, documents.read(document), documents.read(others) if others else ())
