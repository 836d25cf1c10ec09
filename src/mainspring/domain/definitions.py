"""A definition: a kind of work that may be run, and the handler a Python one has."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from mainspring.domain.approvals import ensure_approvers, is_list_of_text
from mainspring.domain.errors import InvalidDefinition, InvalidOption
from mainspring.domain.jobs.backoff import Backoff
from mainspring.domain.jobs.options import (
    ATTEMPTS,
    MAX_TEXT_LENGTH,
    ensure_approvals,
    ensure_delivery,
    ensure_priority,
    ensure_queue,
    ensure_tags,
)
from mainspring.domain.limits import Limit, Rate, ensure_limit_by, ensure_limit_name
from mainspring.domain.schemas import Schema
from mainspring.domain.secrets.paths import Path, secret_paths
from mainspring.domain.types import (
    BUILT_IN,
    DEFAULT_PRIORITY,
    DEFAULT_QUEUE,
    LONGEST_DELAY,
    Delivery,
    ExecutionMode,
    Kind,
)

DEFAULT_MAX_ATTEMPTS = 3
DEFAULT_TIMEOUT = timedelta(hours=1)
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
    concurrency: int | None = None
    key_concurrency: int | None = None
    rate: str | None = None
    burst: int | None = None
    limit: str | None = None
    limit_by: str | None = None
    approvals_needed: int = 0
    approval_expiry: timedelta | None = None
    approvers: tuple[str, ...] = ()
    delivery: Delivery = Delivery.AT_LEAST_ONCE

    def __post_init__(self) -> None:
        ensure_key(self.key)
        ensure_queue(self.queue)
        ensure_priority(self.priority)
        _ensure_types(self)
        if self.max_attempts not in ATTEMPTS:
            raise InvalidDefinition(
                f"{self.key}: max_attempts must be from 1 to 1000, not {self.max_attempts}",
                field="max_attempts",
            )
        _ensure_durations(self)
        if len(self.description) > MAX_TEXT_LENGTH:
            raise InvalidDefinition(
                f"{self.key}: description must be at most {MAX_TEXT_LENGTH:,} characters",
                field="description",
            )
        try:
            ensure_delivery(self.delivery, self.max_attempts)
            ensure_tags(self.tags)
            _ensure_limits(self)
            _ensure_approval(self)
        except InvalidOption as error:
            raise InvalidDefinition(f"{self.key}: {error}", field=error.option) from None


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
    secret_paths: tuple[Path, ...] = field(init=False, compare=False)
    is_simple: bool = field(init=False)

    @property
    def sees_its_job(self) -> bool:
        """Whether it can do something to the job that it runs."""
        return self.wants_context or self.is_plain_worker or self.mode is ExecutionMode.STORED

    def in_mode(self, mode: ExecutionMode) -> "Handler":
        """The same handler, run in another way than it was declared."""
        return replace(self, mode=mode)

    def __post_init__(self) -> None:
        document = self.definition.arg_schema
        schema = None if document is None else Schema(self.definition.key, document)
        object.__setattr__(self, "schema", schema)
        object.__setattr__(self, "secret_paths", secret_paths(document))
        # Read for every job, so it is worked out once.
        is_async = self.mode is ExecutionMode.ASYNC
        is_simple = is_async and not self.wants_context and not self.secret_paths
        object.__setattr__(self, "is_simple", is_simple)


def schemas_of(handlers: Mapping[str, Handler]) -> dict[str, Mapping[str, Any] | None]:
    """What each takes, by its key; None for any payload."""
    return {key: handler.definition.arg_schema for key, handler in handlers.items()}


def fill_in_attempts(given: dict[str, Any]) -> None:
    """What runs at most once has one attempt unless another number is given."""
    if given.get("delivery") == Delivery.AT_MOST_ONCE:
        given.setdefault("max_attempts", 1)


def _ensure_types(definition: Definition) -> None:
    if not isinstance(definition.backoff, Backoff):
        raise InvalidDefinition(
            f"{definition.key}: backoff must be a Backoff, such as Backoff(timedelta(seconds=5)), "
            f"not {definition.backoff!r}",
            field="backoff",
        )
    if not isinstance(definition.description, str):
        raise InvalidDefinition(
            f"{definition.key}: description must be a string, not {definition.description!r}",
            field="description",
        )
    is_whole = isinstance(definition.max_attempts, int) and not isinstance(
        definition.max_attempts, bool
    )
    if not is_whole:
        raise InvalidDefinition(
            f"{definition.key}: max_attempts must be a whole number, not "
            f"{definition.max_attempts!r}",
            field="max_attempts",
        )
    if definition.arg_schema is not None and not isinstance(definition.arg_schema, Mapping):
        raise InvalidDefinition(
            f"{definition.key}: arg_schema must be a JSON Schema, an object", field="arg_schema"
        )
    if not is_list_of_text(definition.tags):
        raise InvalidDefinition(f"{definition.key}: tags must be a list of strings", field="tags")


def _ensure_durations(definition: Definition) -> None:
    key, timeout, retention = definition.key, definition.timeout, definition.retention
    if not isinstance(timeout, timedelta) or timeout <= timedelta(0):
        raise InvalidDefinition(
            f"{key}: timeout must be a timedelta greater than zero, not {timeout!r}",
            field="timeout",
        )
    if retention is not None and not (
        isinstance(retention, timedelta) and retention >= timedelta(0)
    ):
        raise InvalidDefinition(
            f"{key}: retention must be a timedelta, zero or more, not {retention!r}",
            field="retention",
        )
    for name in ("timeout", "retention"):
        value = getattr(definition, name)
        if value is not None and value > LONGEST_DELAY:
            raise InvalidDefinition(
                f"{key}: {name} must be at most {LONGEST_DELAY.days} days", field=name
            )


def _ensure_limits(definition: Definition) -> None:
    own = (definition.concurrency, definition.key_concurrency, definition.rate)
    has_own = any(value is not None for value in own)
    if definition.limit is not None and has_own:
        raise InvalidOption("limit", "names a shared limit, so concurrency and rate cannot be set")
    if definition.limit is not None:
        ensure_limit_name(definition.limit)
    if definition.limit_by is not None and not (has_own or definition.limit):
        raise InvalidOption("limit_by", "needs concurrency, key_concurrency, rate or limit")
    if definition.burst is not None and definition.rate is None:
        raise InvalidOption("burst", "needs a rate")
    ensure_limit_by(definition.limit_by)
    Limit(
        definition.key,
        concurrency=definition.concurrency,
        key_concurrency=definition.key_concurrency,
        rate=None if definition.rate is None else Rate.parse(definition.rate),
        burst=1 if definition.burst is None else definition.burst,
    )


def _ensure_approval(definition: Definition) -> None:
    ensure_approvals("approvals_needed", definition.approvals_needed)
    expiry, approvers = definition.approval_expiry, definition.approvers
    if expiry is not None and not (isinstance(expiry, timedelta) and expiry > timedelta(0)):
        raise InvalidOption(
            "approval_expiry", f"must be a timedelta greater than zero, not {expiry!r}"
        )
    if expiry is not None and expiry > LONGEST_DELAY:
        raise InvalidOption("approval_expiry", f"must be at most {LONGEST_DELAY.days} days")
    ensure_approvers(approvers)
    if (expiry or approvers) and not definition.approvals_needed:
        raise InvalidOption("approvals_needed", "must be 1 or more if approvers or expiry are set")


def ensure_key(key: str) -> None:
    """Refuse a key that could not be typed in a shell or used in a URL as it is."""
    if not isinstance(key, str):
        raise InvalidDefinition(f"the definition key must be a string, not {key!r}", field="key")
    if not _KEY.fullmatch(key):
        raise InvalidDefinition(
            f"the definition key {key!r} must start with a letter or _ and contain only letters, "
            "digits and _ . : - (at most 200 characters)",
            field="key",
        )


def ensure_own_key(key: str) -> None:
    """Refuse a key that is reserved for what comes with Mainspring."""
    if key.startswith(BUILT_IN):
        raise InvalidDefinition(
            f"{key}: keys that start with {BUILT_IN!r} are built in; choose another", field="key"
        )
