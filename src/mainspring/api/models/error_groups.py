"""Errors, grouped, in answers."""

from datetime import date, datetime

from pydantic import Field

from mainspring.api.models.base import Answer, IdOut
from mainspring.domain.error_groups import ErrorGroup


class ErrorDayModel(Answer):
    """How often a group failed on a day (UTC), in a definition."""

    day: date
    definition: str
    count: int


class ErrorGroupModel(Answer):
    """Failed attempts with the same error: its type, place and message, without the values in it.
    Attempts are counted by day (UTC), and kept for 90 days."""

    key: str = Field(description="As jobs and attempts have it in error_key.")
    tenant: str
    sample: str = Field(description="The error of the newest, in one line.")
    count: int = Field(description="Failed attempts on the days that were asked for.")
    is_new: bool = Field(description="Whether it was not seen in the 30 days before.")
    first_at: datetime
    last_at: datetime
    definitions: list[str]
    job_ids: list[IdOut] = Field(description="The newest jobs, up to five.")

    @classmethod
    def of(cls, group: ErrorGroup) -> "ErrorGroupModel":
        own = {name: getattr(group, name) for name in cls.model_fields if hasattr(group, name)}
        return cls.model_construct(**own, tenant=group.tenant_id)


class ErrorGroupDetailsModel(ErrorGroupModel):
    """A group with its days, the newest first."""

    days: list[ErrorDayModel]

    @classmethod
    def of(cls, group: ErrorGroup) -> "ErrorGroupDetailsModel":
        days = [
            ErrorDayModel.model_construct(
                day=each.day, definition=each.definition, count=each.count
            )
            for each in group.days
        ]
        facts = ErrorGroupModel.of(group)
        return cls.model_construct(**dict(facts), days=days)
