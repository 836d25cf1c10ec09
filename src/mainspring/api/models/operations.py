"""Bulk operations in requests and answers."""

from typing import Annotated

from pydantic import Field

from mainspring.api.models.base import Answer, Body, IdOut, InstantIn, LongText, Text
from mainspring.domain.jobs.filters import JobFilter
from mainspring.domain.types import BulkAction, JobSource, JobState


class FilterIn(Body):
    """Which jobs to select, with the filters of the job list."""

    status: Annotated[JobState, Field(strict=False)] | None = None
    source: Annotated[JobSource, Field(strict=False)] | None = None
    definition: Text | None = None
    queue: Text | None = None
    tag: Text | None = None
    created_after: InstantIn | None = None
    created_before: InstantIn | None = None
    error: Text | None = Field(None, description="Text contained in the last error.")
    created_by: Text | None = Field(None, description="Who enqueued the jobs.")

    def read(self) -> JobFilter:
        facts = self.given()
        state = facts.pop("status", None)
        return JobFilter(state=None if state is None else JobState(state), **facts)


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
