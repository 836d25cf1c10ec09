"""Bulk operations in requests and answers."""

from typing import Annotated

from pydantic import Field

from mainspring.api.models.base import (
    Answer,
    Body,
    IdIn,
    IdOut,
    InstantIn,
    LongText,
    OneOrMore,
    Text,
)
from mainspring.domain.jobs.filters import JobFilter
from mainspring.domain.types import BulkAction, JobState


class FilterIn(Body):
    """Which jobs to select, with the filters of the job list: a value or a list of values."""

    state: OneOrMore[Annotated[JobState, Field(strict=False)]] | None = None
    source: OneOrMore[Text] | None = None
    definition: OneOrMore[Text] | None = None
    queue: OneOrMore[Text] | None = None
    tag: OneOrMore[Text] | None = None
    created_after: InstantIn | None = None
    created_before: InstantIn | None = None
    error: OneOrMore[Text] | None = Field(None, description="Text contained in the last error.")
    created_by: OneOrMore[Text] | None = Field(None, description="Who enqueued the jobs.")
    schedule: OneOrMore[Text] | None = None
    slot_at: InstantIn | None = None
    trigger: OneOrMore[Text] | None = None
    event_id: OneOrMore[IdIn] | None = None
    flow_id: OneOrMore[IdIn] | None = None
    parent_id: OneOrMore[IdIn] | None = Field(
        None, description="Jobs that waited for this one, or that it enqueued while it ran."
    )
    worker_id: OneOrMore[IdIn] | None = Field(None, description="Jobs that this worker runs.")
    definition_version: OneOrMore[Annotated[int, Field(ge=1)]] | None = None
    error_key: OneOrMore[Text] | None = Field(None, description="Group of the last error.")

    def read(self) -> JobFilter:
        return JobFilter.of(**self.given())


class Bulk(Body):
    """An action on all jobs that match a filter."""

    action: Annotated[BulkAction, Field(strict=False)]
    filter: FilterIn | None = None
    all: bool = Field(False, description="Select every job, instead of a filter.")
    reason: LongText = ""
    dry_run: bool = Field(False, description="Only count the matching jobs.")


class BulkModel(Answer):
    """How many jobs match, and the job that carries out the operation unless it is a dry run."""

    job_id: IdOut | None = None
    count: int
    is_exact: bool = Field(description="False if counting stopped before all jobs were checked.")
