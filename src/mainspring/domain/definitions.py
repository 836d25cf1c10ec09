"""A definition: a kind of work that may be run, and the handler a Python one has."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from mainspring.domain.errors import InvalidDefinition
from mainspring.domain.jobs import ATTEMPTS, ensure_priority, ensure_queue
from mainspring.domain.retry import Backoff
from mainspring.domain.schemas import Schema
from mainspring.domain.types import DEFAULT_PRIORITY, DEFAULT_QUEUE, ExecutionMode, Kind

DEFAULT_MAX_ATTEMPTS = 3
DEFAULT_TIMEOUT = timedelta(hours=1)
BUILT_IN = "mainspring."
"""What the keys of definitions that come with Mainspring start with."""
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,199}")


@dataclass(frozen=True, slots=True)
class Definition:
    """What is stored of a definition and given to its jobs unless an enqueue says otherwise."""

    key: str
    queue: str = DEFAULT_QUEUE
    priority: int = DEFAULT_PRIORITY
    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    timeout: timedelta = DEFAULT_TIMEOUT
    backoff: Backoff = field(default_factory=Backoff)
    description: str = ""
    kind: Kind = Kind.PYTHON
    arg_schema: Mapping[str, Any] | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    retention: timedelta | None = None

    def __post_init__(self) -> None:
        ensure_key(self.key)
        ensure_queue(self.queue)
        ensure_priority(self.priority)
        if self.max_attempts not in ATTEMPTS:
            raise InvalidDefinition(
                f"{self.key}: max_attempts must be from 1 to 1000, not {self.max_attempts}"
            )
        if not isinstance(self.timeout, timedelta) or self.timeout <= timedelta(0):
            raise InvalidDefinition(f"{self.key}: timeout must be a timedelta of more than zero")
        if self.retention is not None and not (
            isinstance(self.retention, timedelta) and self.retention >= timedelta(0)
        ):
            raise InvalidDefinition(f"{self.key}: retention must be a timedelta, zero or more")
        if self.arg_schema is not None and not isinstance(self.arg_schema, Mapping):
            raise InvalidDefinition(f"{self.key}: arg_schema must be a JSON Schema, an object")
        if isinstance(self.tags, str) or not all(isinstance(tag, str) for tag in self.tags):
            raise InvalidDefinition(f"{self.key}: tags must be a list of texts")


@dataclass(frozen=True, slots=True)
class DefinitionState:
    """A definition as it is stored; jobs keep the version they were enqueued under."""

    definition: Definition
    version: int
    is_active: bool
    created_at: datetime
    updated_at: datetime

    @property
    def key(self) -> str:
        return self.definition.key

    @property
    def is_system(self) -> bool:
        """Whether it comes with Mainspring."""
        return self.key.startswith(BUILT_IN)


@dataclass(frozen=True, slots=True)
class Handler:
    """A definition bound to the function that does its work."""

    definition: Definition
    function: Callable[..., Any]
    mode: ExecutionMode
    wants_context: bool = False
    is_plain_worker: bool = False
    schema: Schema | None = field(init=False, compare=False)
    is_simple: bool = field(init=False)

    def __post_init__(self) -> None:
        document = self.definition.arg_schema
        schema = None if document is None else Schema(self.definition.key, document)
        object.__setattr__(self, "schema", schema)
        # Read for every job, so it is worked out once.
        is_async = self.mode is ExecutionMode.ASYNC
        is_simple = is_async and not self.wants_context and schema is None
        object.__setattr__(self, "is_simple", is_simple)


def ensure_key(key: str) -> None:
    """Refuse a key that could not be typed in a shell or used in a URL as it is."""
    if not _KEY.fullmatch(key):
        raise InvalidDefinition(
            f"the definition key {key!r} must start with a letter or _ and hold only letters, "
            "digits and _ . : - (200 at most)"
        )


def ensure_own_key(key: str) -> None:
    """Refuse a key that is reserved for what comes with Mainspring."""
    if key.startswith(BUILT_IN):
        raise InvalidDefinition(
            f"{key}: keys that start with {BUILT_IN!r} are built in; choose another"
        )
