"""A tenant: who work belongs to, and what it may take of a queue."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeGuard

from mainspring.domain.definitions import Definition
from mainspring.domain.errors import InvalidOption, InvalidSchedule
from mainspring.domain.housekeeping import QUEUE
from mainspring.domain.schedules.zones import find_zone
from mainspring.domain.types import BUILT_IN, TenantId

WEIGHTS = range(1, 1001)
_MOST_RUNNING = 2**31 - 1
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:@-]{0,199}")


@dataclass(frozen=True, slots=True)
class TenantState:
    """A tenant as it is stored, with how many live jobs it has: ready to start, waiting for
    something, running, and held (blocked or awaiting approval)."""

    tenant_id: TenantId
    weight: int
    max_running: int | None
    ready: int
    waiting: int
    running: int
    held: int
    created_at: datetime
    zone: str = "UTC"
    """Of its schedules that name none."""
    is_enabled: bool = True
    """Without it nothing is enqueued for the tenant, no job of it starts and its tokens are
    refused."""


@dataclass(frozen=True, slots=True)
class TenantContents:
    """How many of each thing a tenant has."""

    live_jobs: int
    finished_jobs: int
    flows: int
    schedules: int
    triggers: int
    events: int
    people: int
    tokens: int


DELETE_TENANT = Definition(
    key=f"{BUILT_IN}delete_tenant",
    queue=QUEUE,
    timeout=timedelta(days=1),
    # What fails is a batch that met another transaction; the next attempt goes on with the rest.
    max_attempts=10,
    description="Deletes a tenant with all it has; started by DELETE /api/v1/tenants/{name}",
    arg_schema={
        "type": "object",
        "properties": {"tenant": {"type": "string"}},
        "required": ["tenant"],
        "additionalProperties": False,
    },
)


def ensure_name(tenant_id: object) -> None:
    """Refuse a name that could not be typed in a shell or used in a URL as it is."""
    if not isinstance(tenant_id, str) or not _NAME.fullmatch(tenant_id):
        raise InvalidOption(
            "tenant",
            "must start with a letter, a digit or _ and contain only letters, digits and _ . : @ "
            f"- (at most 200 characters), not {tenant_id!r}",
        )


def ensure_weight(weight: object) -> None:
    if not _is_integer(weight) or weight not in WEIGHTS:
        raise InvalidOption("weight", f"must be a whole number from 1 to 1000, not {weight!r}")


def ensure_max_running(max_running: object) -> None:
    """None is no limit; 0 lets nothing start."""
    if max_running is None:
        return
    if not _is_integer(max_running) or not 0 <= max_running <= _MOST_RUNNING:
        raise InvalidOption(
            "max_running", f"must be a whole number, 0 or more, or none, not {max_running!r}"
        )


def ensure_zone(zone: object) -> None:
    if not isinstance(zone, str):
        raise InvalidOption("zone", f"must be the name of a time zone, not {zone!r}")
    try:
        find_zone(zone)
    except InvalidSchedule as error:
        raise InvalidOption("zone", f"is wrong: {error.problem}") from None


def ensure_enabled(is_enabled: object) -> None:
    if not isinstance(is_enabled, bool):
        raise InvalidOption("is_enabled", f"must be true or false, not {is_enabled!r}")


def _is_integer(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)
