"""Flows in requests and responses."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from mainspring.api.models.base import Answer, Body, IdIn, IdOut, Name, Object
from mainspring.api.models.jobs import JobOptions
from mainspring.domain.flows import MOST_DEPENDENCIES, MOST_STEPS, FlowJob, FlowState, FlowSummary
from mainspring.domain.types import JobState, WaitsFor


class NewStep(JobOptions):
    """One job of a flow. `after` names steps of this flow; `after_jobs` are ids of existing
    jobs."""

    step: Name = Field(description="Name of the step, unique in its flow.")
    definition: Name
    payload: Object = {}
    after: Annotated[list[Name], Field(max_length=1000)] = []
    after_jobs: Annotated[list[IdIn], Field(max_length=1000)] = []
    on_parent_failure: Literal["cancel", "continue", "wait"] = "cancel"


def _ensure_few(steps: Any) -> Any:
    """Counted before each is looked at, of which there may be very many."""
    if isinstance(steps, list) and len(steps) > MOST_STEPS:
        raise ValueError(
            f"can have at most {MOST_STEPS:,} items, not {len(steps):,}; split the flow into "
            "several"
        )
    given = [step for step in steps if isinstance(step, dict)] if isinstance(steps, list) else []
    lists = [step.get(name) for step in given for name in ("after", "after_jobs")]
    count = sum(len(parents) for parents in lists if isinstance(parents, list))
    if count > MOST_DEPENDENCIES:
        raise ValueError(
            f"can have at most {MOST_DEPENDENCIES:,} parents together, not {count:,}; split the "
            "flow into several"
        )
    return steps


class NewFlow(Body):
    """Jobs that wait for each other, enqueued together: all or none."""

    name: Name
    steps: Annotated[
        list[NewStep],
        Field(min_length=1, max_length=MOST_STEPS),
        BeforeValidator(_ensure_few),
    ]


class FlowModel(Answer):
    """A flow with the number of its jobs in each state."""

    id: IdOut
    tenant: str
    name: str
    state: FlowState
    jobs: int
    counts: dict[JobState, int]
    created_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, flow: FlowSummary) -> "FlowModel":
        own = {name: getattr(flow, name) for name in cls.model_fields if hasattr(flow, name)}
        return cls.model_construct(**{**own, "tenant": flow.tenant_id, "counts": dict(flow.counts)})


class FlowJobModel(Answer):
    """One job of a flow; `last_error` is its first line, up to 1,000 characters."""

    id: IdOut
    step: str
    definition: str
    state: JobState
    waits_for: WaitsFor | None
    parent_ids: list[IdOut]
    last_error: str | None

    @classmethod
    def of(cls, job: FlowJob) -> "FlowJobModel":
        own = {name: getattr(job, name) for name in cls.model_fields}
        return cls.model_construct(**{**own, "parent_ids": list(job.parent_ids)})


class StartedModel(Answer):
    """A flow that was enqueued, with its jobs by step."""

    id: IdOut
    job_ids: dict[str, IdOut]


class CountModel(Answer):
    """How many jobs were affected."""

    jobs: int
