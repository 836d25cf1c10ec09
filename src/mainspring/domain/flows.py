"""Flows: jobs that wait for each other, and the order in which they can be written down."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from graphlib import CycleError, TopologicalSorter
from typing import Any

from mainspring.domain.errors import InvalidFlow, InvalidOption
from mainspring.domain.jobs.options import (
    EnqueueOptions,
    ensure_on_failure,
    ensure_text,
)
from mainspring.domain.types import JobId, JobState, Payload, TenantId, WaitsFor

# sql/internal/bounds.sql has the same.
MOST_STEPS = 10_000
MOST_DEPENDENCIES = 50_000
MOST_BYTES = 64 * 1024 * 1024
_SHOWN_OF_CYCLE = 10


class FlowState(StrEnum):
    """The state of a flow; it is running as long as one of its jobs is live."""

    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True)
class FlowSummary:
    """A flow with the number of its jobs in each state."""

    id: int
    tenant_id: TenantId
    name: str
    state: FlowState
    jobs: int
    counts: Mapping[JobState, int]
    created_at: datetime
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class FlowJob:
    """One job of a flow; `waits_for` is None if it can be claimed or has ended."""

    id: JobId
    step: str
    definition: str
    state: JobState
    waits_for: WaitsFor | None
    parent_ids: tuple[JobId, ...]
    last_error: str | None


@dataclass(frozen=True, slots=True)
class Parent:
    """A job that another waited for, with its result."""

    job_id: JobId
    step: str | None
    state: JobState
    result: Any


@dataclass(eq=False, slots=True)
class Step:
    """One job of a flow that is being built; `parents` are steps and existing jobs."""

    definition: str
    payload: Payload
    options: EnqueueOptions
    name: str = ""
    on_parent_failure: str = "cancel"
    parents: list["Step | JobId"] = field(default_factory=list)

    def __post_init__(self) -> None:
        ensure_on_failure(self.on_parent_failure)
        if self.name:
            ensure_text("step", self.name)

    def after(self, *parents: "Step | JobId") -> "Step":
        """Wait for more steps or jobs; returns the step itself."""
        self.parents.extend(parents)
        return self

    def __repr__(self) -> str:
        return f"<step {self.name or self.definition}>"


def in_order(steps: Sequence[Step]) -> list[Step]:
    """The same steps, each behind those it waits for; refuses cycles and steps of other flows."""
    if not steps:
        raise InvalidFlow("the flow has no steps; add one")
    if len(steps) > MOST_STEPS:
        raise InvalidFlow(
            f"a flow can have at most {MOST_STEPS:,} steps, not {len(steps):,}; "
            "split it into several flows"
        )
    if (dependencies := sum(len(step.parents) for step in steps)) > MOST_DEPENDENCIES:
        raise InvalidFlow(
            f"the steps of a flow can have at most {MOST_DEPENDENCIES:,} parents together, not "
            f"{dependencies:,}; put a step in between that many others wait for"
        )
    known = set(steps)
    sorter: TopologicalSorter[Step] = TopologicalSorter()
    for step in steps:
        parents = [parent for parent in step.parents if isinstance(parent, Step)]
        if foreign := [parent for parent in parents if parent not in known]:
            raise InvalidFlow(f"{step!r} comes after {foreign[0]!r}, which belongs to another flow")
        sorter.add(step, *parents)
    try:
        return list(sorter.static_order())
    except CycleError as error:
        raise InvalidFlow(f"the steps form a cycle: {_circle(error.args[1])}") from None


def _circle(steps: Sequence[Step]) -> str:
    """The steps of a cycle, the last of which is the first; of a long one only some."""
    shown = [repr(step) for step in steps]
    if len(shown) > _SHOWN_OF_CYCLE:
        left_out = len(shown) - _SHOWN_OF_CYCLE
        shown[_SHOWN_OF_CYCLE - 1 : -1] = [f"... ({left_out:,} more)"]
    return " after ".join(shown)


def ensure_size(size: int) -> None:
    """Refuse payloads of so many bytes together."""
    if size > MOST_BYTES:
        raise InvalidFlow(
            f"the payloads of a flow can have at most {MOST_BYTES:,} bytes together, not "
            f"{size:,}; split it into several flows"
        )


def as_facts(
    steps: Sequence[Step],
    payloads: Sequence[Payload],
    options: Sequence[EnqueueOptions] | None = None,
) -> list[dict[str, Any]]:
    """Steps in order, as the database takes them, each with the payload that is stored and, where
    they are not the step's own, the options."""
    numbers = {step: number for number, step in enumerate(steps)}
    given = zip(steps, payloads, options or [step.options for step in steps], strict=True)
    return [{**_facts(step, numbers, asked), "payload": payload} for step, payload, asked in given]


def _facts(step: Step, numbers: Mapping[Step, int], options: EnqueueOptions) -> dict[str, Any]:
    facts = {
        "definition": step.definition,
        "step": step.name,
        "after": [numbers[each] for each in step.parents if isinstance(each, Step)],
        "after_jobs": [each for each in step.parents if not isinstance(each, Step)],
        "on_parent_failure": step.on_parent_failure,
        "queue": options.queue,
        "priority": options.priority,
        "max_attempts": options.max_attempts,
        "correlation_id": options.correlation_id,
        "tags": list(options.tags),
        "limit_key": options.limit_key,
        "approvals_needed": options.approvals_needed,
        "scheduled_for": options.scheduled_for and options.scheduled_for.isoformat(),
        "delay": None if options.delay is None else options.delay.total_seconds(),
        "created_by": options.created_by,
        "source": options.source,
        "delivery": options.delivery,
    }
    return {name: value for name, value in facts.items() if value not in (None, [], "")}


_STEP_OPTIONS = frozenset(
    {
        *("queue", "priority", "max_attempts", "correlation_id", "tags", "limit_key"),
        *("approvals_needed", "scheduled_for", "delay", "created_by", "source", "delivery"),
    }
)


def ensure_step_options(names: Iterable[str]) -> None:
    for name in names:
        if name not in _STEP_OPTIONS:
            raise InvalidOption(
                name, f"is not a step option; use {', '.join(sorted(_STEP_OPTIONS))}"
            )
