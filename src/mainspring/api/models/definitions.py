"""Definitions in requests and responses."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from mainspring.api.models.base import (
    Answer,
    Body,
    DurationIn,
    DurationOut,
    LongText,
    Name,
    Object,
    Text,
)
from mainspring.api.models.jobs import Priority, Tags
from mainspring.api.models.limits import Burst, Count
from mainspring.domain.definitions import DefinitionState
from mainspring.domain.jobs.backoff import Backoff
from mainspring.domain.types import Delivery, Kind

Arguments = Annotated[list[LongText], Field(max_length=1000)]
ExitCodes = Annotated[list[Annotated[int, Field(ge=0, le=255)]], Field(max_length=256)]


class BackoffModel(Answer):
    """How long a failed job waits before its next attempt: `base` seconds, multiplied by `factor`
    each time, at most `cap`, plus up to `jitter`."""

    base: DurationOut
    factor: float
    cap: DurationOut
    jitter: DurationOut


class DefinitionModel(Answer):
    """A kind of work that can be run. Durations are in seconds."""

    key: str
    kind: Kind
    description: str
    queue: str
    priority: int
    max_attempts: int
    timeout: DurationOut
    backoff: BackoffModel
    arg_schema: Object | None
    spec: Object
    tags: list[str]
    retention: DurationOut | None
    concurrency: int | None
    key_concurrency: int | None
    rate: str | None
    burst: int | None
    limit: str | None
    limit_by: str | None
    approvals_needed: int
    approval_expiry: DurationOut | None
    approvers: list[str]
    delivery: Delivery = Field(
        description="at_most_once: a job whose worker died is not run again."
    )
    version: int
    is_active: bool
    is_system: bool
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, state: DefinitionState) -> "DefinitionModel":
        known = state.definition
        own = {name: getattr(known, name) for name in cls.model_fields if hasattr(known, name)}
        own |= {"tags": list(known.tags), "approvers": list(known.approvers)}
        own |= {"spec": dict(known.spec), "backoff": _backoff(known.backoff)}
        return cls.model_construct(
            **own,
            version=state.version,
            is_active=state.is_active,
            is_system=state.is_system,
            created_at=state.created_at,
            updated_at=state.updated_at,
        )


def _backoff(backoff: Backoff) -> BackoffModel:
    return BackoffModel.model_construct(**asdict(backoff))


class BackoffIn(Body):
    """How long a failed job waits; omitted fields keep their defaults."""

    base: DurationIn | None = None
    factor: Annotated[float, Field(ge=1, le=100)] | None = None
    cap: DurationIn | None = None
    jitter: DurationIn | None = None

    def read(self) -> Backoff:
        return Backoff(**{name: value for name, value in self.given().items() if value is not None})


class CommonFields(Body):
    """Fields of every definition. Durations are in seconds."""

    description: LongText | None = None
    queue: Text | None = None
    priority: Priority | None = None
    max_attempts: Annotated[int, Field(ge=1, le=1000)] | None = None
    timeout: DurationIn | None = None
    backoff: BackoffIn | None = None
    arg_schema: Object | None = None
    tags: Tags | None = None
    retention: DurationIn | None = None
    concurrency: Count | None = None
    key_concurrency: Count | None = None
    rate: Text | None = Field(None, description="For example, 100/minute.")
    burst: Burst | None = None
    limit: Name | None = None
    limit_by: Text | None = None
    approvals_needed: Annotated[int, Field(ge=0, le=100)] | None = None
    approval_expiry: DurationIn | None = None
    approvers: Annotated[list[Text], Field(max_length=100)] | None = None
    delivery: Literal["at_least_once", "at_most_once"] | None = Field(
        None, description="at_most_once: a job whose worker died is not run again."
    )

    def read(self) -> dict[str, object]:
        """The fields that were given, as the services take them."""
        facts = self.given()
        if self.backoff is not None:
            facts["backoff"] = self.backoff.read()
        return facts


class DefinitionFields(CommonFields):
    """Fields of a definition that needs no code. Durations are in seconds."""

    function: Text | None = Field(None, description="SQL function to call (SQL definitions only).")
    role: Text | None = Field(None, description="Role that the SQL function runs as.")
    trusted: bool | None = Field(
        None,
        description="Whether the SQL function may run through Mainspring's own login, if nobody "
        "can log in as its role.",
    )
    argv: Annotated[list[LongText | Arguments], Field(max_length=1000)] | None = Field(
        None,
        description="Program and arguments (commands only). Arguments in a nested list are "
        "omitted if the payload lacks a field they name.",
    )
    working_directory: Text | None = None
    environment: Annotated[list[Text], Field(max_length=100)] | None = None
    success_codes: ExitCodes | None = None
    fail_codes: ExitCodes | None = None


def _no_python(kind: object) -> object:
    if kind == Kind.PYTHON:
        raise ValueError("a Python handler is declared in code, with @app.job")
    return kind


class NewDefinition(DefinitionFields):
    """A definition to create."""

    key: Name
    kind: Annotated[Literal["sql", "command", "remote"], BeforeValidator(_no_python)]

    def read(self) -> dict[str, object]:
        facts = super().read()
        return {name: value for name, value in facts.items() if name not in ("key", "kind")}
