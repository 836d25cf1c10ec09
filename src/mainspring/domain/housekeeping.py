"""Housekeeping: the definitions that come with Mainspring."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from mainspring.domain.definitions import Definition
from mainspring.domain.errors import InvalidOption
from mainspring.domain.types import BUILT_IN

# Every worker serves it, besides those it is told to.
QUEUE = "mainspring"

_TIMEOUT = timedelta(hours=6)
_NOTHING: dict[str, Any] = {"type": "object", "additionalProperties": False}
_POSITIVE: dict[str, Any] = {"type": "number", "exclusiveMinimum": 0, "maximum": 3_000_000_000}
_TABLE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "table": {"type": "string", "description": "with its schema: civic.sessions"},
        "column": {"type": "string", "description": "a date or timestamp"},
        "older_than_days": {**_POSITIVE, "maximum": 36_500},
        "older_than_seconds": _POSITIVE,
        "batch_size": {"type": "integer", "minimum": 1, "maximum": 100_000},
        "max_rows": {"type": "integer", "minimum": 1},
    },
    "required": ["table", "column"],
    "oneOf": [{"required": ["older_than_days"]}, {"required": ["older_than_seconds"]}],
    "additionalProperties": False,
}

_IDS: dict[str, Any] = {"type": "array", "items": {"type": "string", "pattern": "^D[0-9]{2}$"}}
_CHECKS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "only": {**_IDS, "description": "the checks to make; all by default"},
        "ignore": {**_IDS, "description": "checks whose findings do not make the job fail"},
        "fail_on": {"enum": ["warning", "critical"], "default": "warning"},
    },
    "additionalProperties": False,
}


def _built_in(name: str, description: str, arg_schema: dict[str, Any]) -> Definition:
    return Definition(
        key=f"{BUILT_IN}{name}",
        queue=QUEUE,
        timeout=_TIMEOUT,
        description=description,
        arg_schema=arg_schema,
    )


PRUNE_HISTORY = _built_in(
    "prune_history", "Removes finished jobs whose retention has passed", _NOTHING
)
PRUNE_KEYS = _built_in(
    "prune_keys", "Removes expired idempotency keys and dedupe windows", _NOTHING
)
PRUNE_TABLE = _built_in("prune_table", "Removes old rows from a table on the allowed list", _TABLE)
DOCTOR = _built_in("doctor", "Examines the database; fails if it finds a problem", _CHECKS)
# What it was called before; schedules of that name go on.
VACUUM_CHECK = _built_in("vacuum_check", "The same as mainspring.doctor", _CHECKS)
DEFINITIONS = (PRUNE_HISTORY, PRUNE_KEYS, PRUNE_TABLE, DOCTOR, VACUUM_CHECK)


def ensure_leasable(*, queues: Iterable[str] = (), definitions: Iterable[str] = ()) -> None:
    """What comes with Mainspring is run by its own workers, never by one over the API."""
    if QUEUE in queues:
        raise InvalidOption(
            "queues", f"cannot contain {QUEUE}, which only Mainspring's own workers serve"
        )
    for key in definitions:
        if key.startswith(BUILT_IN):
            raise InvalidOption(
                "definitions", f"cannot contain {key}, which only Mainspring's own workers run"
            )


# Indexes that have grown

# Smaller ones cost less than to rebuild them.
LARGE_INDEX_BYTES = 64 * 1024 * 1024
_BLOATED_FACTOR = 10
_ENTRY_BYTES = 100


@dataclass(frozen=True, slots=True)
class IndexSize:
    """An index with an upper bound of its entries; one that is not valid is left over from a
    rebuild that was ended."""

    name: str
    bytes: int
    entries: int
    is_valid: bool

    @property
    def is_bloated(self) -> bool:
        """Whether it has many times the size of its content, as after a long transaction that kept
        dead entries from being removed."""
        return self.bytes >= _BLOATED_FACTOR * max(self.entries, 1) * _ENTRY_BYTES
