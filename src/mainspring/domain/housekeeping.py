"""Housekeeping: the definitions that come with Mainspring, and what is wrong with a database."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any

from mainspring.domain.batches import Aside
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
VACUUM_CHECK = _built_in(
    "vacuum_check", "Fails if dead rows pile up or a job cannot be processed", _NOTHING
)
DEFINITIONS = (PRUNE_HISTORY, PRUNE_KEYS, PRUNE_TABLE, VACUUM_CHECK)


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


# The vacuum check

_MANY_DEAD = 100_000
_VACUUMED_WITHIN = 3600.0
_LONG_TRANSACTION = 3600.0
_OLD_AGE = 1_000_000_000


@dataclass(frozen=True, slots=True)
class TableHealth:
    """A table of ours; `vacuumed_seconds_ago` is None if it never was."""

    table: str
    live: int
    dead: int
    vacuumed_seconds_ago: float | None
    bytes: int

    @property
    def is_neglected(self) -> bool:
        """A queue that is worked makes dead rows all the time; they are to go within the hour."""
        ago = self.vacuumed_seconds_ago
        is_overdue = ago is None or ago > _VACUUMED_WITHIN
        return self.dead >= _MANY_DEAD and self.dead > self.live and is_overdue


@dataclass(frozen=True, slots=True)
class ServerHealth:
    """What keeps dead rows from being removed; no transaction is None."""

    oldest_transaction_seconds: float | None
    oldest_transaction_pid: int | None
    oldest_transaction_application: str | None
    transaction_id_age: int
    is_autovacuum_on: bool


def problems(
    tables: list[TableHealth], server: ServerHealth, asides: Sequence[Aside] = ()
) -> list[str]:
    """What an operator should look after, a sentence each; none if all is well."""
    found = []
    if not server.is_autovacuum_on:
        found.append("autovacuum is off; turn it on")
    seconds = server.oldest_transaction_seconds
    if seconds is not None and seconds > _LONG_TRANSACTION:
        found.append(
            f"a transaction of {server.oldest_transaction_application or 'a client'} "
            f"(pid {server.oldest_transaction_pid}) has been open for {seconds / 3600:.1f} hours "
            "and keeps dead rows from being removed; end it"
        )
    if server.transaction_id_age > _OLD_AGE:
        found.append(
            f"the oldest transaction id is {server.transaction_id_age:,} behind; "
            "vacuum the database before ids run out at 2,000,000,000"
        )
    found.extend(
        f"mainspring.{each.table} has {each.dead:,} dead rows and {each.live:,} live ones, and "
        "was not vacuumed in the last hour; find out why autovacuum does not reach it"
        for each in tables
        if each.is_neglected
    )
    found.extend(
        f"job {each.key} was set aside by {each.duty} {each.tries} times, since it cannot be "
        f"processed: {each.reason}; mend or delete it"
        for each in asides
    )
    return found


def report(
    tables: list[TableHealth], server: ServerHealth, asides: Sequence[Aside] = ()
) -> dict[str, Any]:
    """The same as a result of a job."""
    return {
        "problems": problems(tables, server, asides),
        "server": asdict(server),
        "tables": [asdict(each) for each in tables],
    }
