"""Bulk operations: cancel, retry or delete jobs by filter. Each is a job itself, of a definition
that is built in.

Jobs are looked for stage by stage, in the order of their ids: what is live, what has ended, or what
has ended in one state without success. How far an operation is, is its `Sweep`, which is also the
checkpoint of its job.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Final

from mainspring.domain.definitions import Definition
from mainspring.domain.errors import InvalidOption
from mainspring.domain.housekeeping import QUEUE
from mainspring.domain.jobs.filters import JobFilter, read_filter
from mainspring.domain.jobs.model import FINAL_STATES, LIVE_STATES, MOVES
from mainspring.domain.jobs.outcomes import clean
from mainspring.domain.types import BUILT_IN, BulkAction, JobState, TenantId

LIVE: Final = "live"
ENDED: Final = "ended"
CHANGED_MEANWHILE: Final = "changed_meanwhile"
"""Why a job was skipped that passed when all were counted, and no longer when its turn came."""
REFUSED: Final = "refused"
"""Why a job was skipped that the database did not let change, for a reason of its own."""

_MOST_REFUSED = 100
_REASON_LENGTH = 200

STATES: Final[Mapping[BulkAction, tuple[JobState, ...]]] = MappingProxyType(
    {
        BulkAction.CANCEL: tuple(each for each in JobState if JobState.CANCELED in MOVES[each]),
        BulkAction.RETRY: tuple(
            each for each in JobState if each in FINAL_STATES and JobState.QUEUED in MOVES[each]
        ),
        BulkAction.DELETE: tuple(each for each in JobState if each is not JobState.RUNNING),
    }
)
"""The states that a job can be in for each."""

_DONE = {
    BulkAction.CANCEL: "canceled",
    BulkAction.RETRY: "retried",
    BulkAction.DELETE: "deleted",
}

BULK = Definition(
    key=f"{BUILT_IN}bulk",
    queue=QUEUE,
    timeout=timedelta(days=1),
    # What fails is a batch that met another transaction; the next attempt goes on behind the last.
    max_attempts=10,
    description="Cancels, retries or deletes jobs by filter; started by POST /api/v1/jobs/bulk",
    arg_schema={
        "type": "object",
        "properties": {
            "action": {"enum": list(BulkAction)},
            "filter": {"type": "object"},
            "reason": {"type": "string"},
            "tenant": {"type": "string"},
            "creator": {"type": "string", "description": "only the jobs of this member"},
            "actor": {"type": "string", "description": "who requested it"},
            "total": {
                "type": "integer",
                "description": "how many jobs matched, if all were counted",
            },
        },
        "required": ["action", "filter", "tenant", "actor"],
        "additionalProperties": False,
    },
)


@dataclass(frozen=True, slots=True)
class Operation:
    """What is to be done, to which jobs, and in whose name; `identity` is by which the database
    knows them."""

    action: BulkAction
    asked: JobFilter
    tenant_id: TenantId
    reason: str | None = None
    actor: str = ""
    identity: str | None = None
    total: int | None = None
    started_at: datetime | None = None

    @property
    def states(self) -> tuple[JobState, ...]:
        return self.asked.state or STATES[self.action]

    @property
    def stages(self) -> tuple[str, ...]:
        """Where jobs in these states are, in the order they are looked for."""
        live = (LIVE,) if LIVE_STATES.intersection(self.states) else ()
        ended = [state for state in self.states if state in FINAL_STATES]
        if ended and (JobState.SUCCEEDED in ended or len(self.asked.created_by) == 1):
            return (*live, ENDED)
        return (*live, *ended)

    @property
    def ended_before(self) -> datetime | None:
        """What was put back and fails once more is not put back a second time."""
        return self.started_at if self.action is BulkAction.RETRY else None


def ensure_sensible(action: BulkAction, asked: JobFilter, *, is_all: bool) -> None:
    """Refuse a filter that means every job without saying so, or none."""
    if asked == JobFilter() and not is_all:
        raise InvalidOption(
            "filter", f'is empty; set "all" to true if every job should be {_DONE[action]}'
        )
    if asked != JobFilter() and is_all:
        raise InvalidOption("all", "and a filter cannot be used together; choose one")
    for state in asked.state:
        if state not in STATES[action]:
            raise InvalidOption(
                "state",
                f"{state} cannot be combined with {action}: such jobs cannot be {_DONE[action]}; "
                f"choose {_listed(STATES[action])}, or omit it",
            )
    for definition in asked.definition:
        if definition.startswith(BUILT_IN):
            raise InvalidOption(
                "definition",
                f"{definition} is built in and excluded from bulk operations; "
                f"{action} them one by one",
            )
    after, before = asked.created_after, asked.created_before
    if after is not None and before is not None and after >= before:
        raise InvalidOption("created_after", "is not before created_before; no job can match")


def _listed(states: tuple[JobState, ...]) -> str:
    return f"{', '.join(states[:-1])} or {states[-1]}"


def read_operation(
    payload: Mapping[str, Any],
    *,
    tenant_id: TenantId,
    started_at: datetime,
    identity: str | None = None,
) -> Operation:
    """What a payload says that `start_bulk` has written."""
    facts = dict(payload["filter"])
    if "creator" in payload:
        facts["created_by"] = payload["creator"]
    return Operation(
        BulkAction(payload["action"]),
        read_filter(facts),
        tenant_id,
        reason=payload.get("reason"),
        actor=payload["actor"],
        identity=identity,
        total=payload.get("total"),
        started_at=started_at,
    )


@dataclass(frozen=True, slots=True)
class Change:
    """What came of a batch; `busy` are jobs that someone else held, `refused` those that the
    database did not let change, with the reasons."""

    changed: int
    skipped: Mapping[str, int]
    busy: tuple[int, ...] = ()
    refused: tuple[tuple[int, str], ...] = ()


def refused(job_id: int, reason: str) -> Change:
    """What came of one job that the database does not let change."""
    return Change(0, {REFUSED: 1}, refused=((job_id, clean(reason, limit=_REASON_LENGTH)),))


@dataclass(frozen=True, slots=True)
class Sweep:
    """How far an operation is: the stage, the last id seen in it, and what came of it so far.
    `refused` are the first of such jobs."""

    stage: int = 0
    after: int = 0
    changed: int = 0
    skipped: Mapping[str, int] = field(default_factory=dict)
    busy: tuple[int, ...] = ()
    total: int | None = None
    refused: tuple[tuple[int, str], ...] = ()

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> "Sweep":
        """From a checkpoint; a newer release may have written more into it."""
        known = {each.name: saved[each.name] for each in fields(cls) if each.name in saved}
        known["busy"] = tuple(known.get("busy", ()))
        known["refused"] = tuple((job_id, reason) for job_id, reason in known.get("refused", ()))
        return cls(**known)

    def saved(self) -> dict[str, Any]:
        """As a checkpoint. The previous release does not know `refused`."""
        facts = asdict(self)
        return facts if self.refused else {k: v for k, v in facts.items() if k != "refused"}

    @property
    def done(self) -> int:
        return self.changed + sum(self.skipped.values())

    def moved(self, edge: int | None) -> "Sweep":
        """Behind the last that was looked at; at the start of the next stage if that was all."""
        if edge is None:
            return replace(self, stage=self.stage + 1, after=0)
        return replace(self, after=edge)

    def noted(self, change: Change) -> "Sweep":
        skipped = dict(self.skipped)
        for reason, count in change.skipped.items():
            skipped[reason] = skipped.get(reason, 0) + count
        return replace(
            self,
            changed=self.changed + change.changed,
            skipped=skipped,
            busy=(*self.busy, *change.busy),
            refused=(*self.refused, *change.refused)[:_MOST_REFUSED],
        )

    def without_first(self) -> "Sweep":
        return replace(self, busy=self.busy[1:])

    def ended(self) -> "Sweep":
        """All that was counted is accounted for."""
        missing = (self.total or 0) - self.done
        return self.noted(Change(0, {CHANGED_MEANWHILE: missing})) if missing > 0 else self

    def result(self, action: BulkAction) -> dict[str, Any]:
        result = {
            "action": action,
            "changed": self.changed,
            "skipped": sum(self.skipped.values()),
            "reasons": dict(self.skipped),
        }
        if self.refused:
            result["refused"] = [
                {"job_id": str(job_id), "error": reason} for job_id, reason in self.refused
            ]
        return result
