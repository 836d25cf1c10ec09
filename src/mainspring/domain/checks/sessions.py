"""What other sessions do to the queue: D03 to D07, D09, D45."""

from collections.abc import Sequence
from dataclasses import dataclass

from mainspring.domain.checks.model import Finding, Severity, graded, literal, size, span
from mainspring.domain.checks.server import Settings

_LONG_SECONDS, _TOO_LONG_SECONDS = 600, 3600
_IDLE_SECONDS = 300
_PREPARED_SECONDS = 600
_MUCH_WAL = 10 * 1024**3
_OLD_IDS, _TOO_OLD_IDS = 1_000_000, 10_000_000
_FULL, _TOO_FULL = 0.80, 0.95
_LOCK_SECONDS = 5
_HELD = "rows that are dead meanwhile cannot be removed, so that tables and indexes grow"


@dataclass(frozen=True, slots=True)
class Transaction:
    """An open transaction of another session; `is_idle` if it waits for its client."""

    pid: int
    login: str
    application: str
    seconds: float
    is_idle: bool
    idle_seconds: float

    @property
    def who(self) -> str:
        return f"{self.application or 'a client'} (login {self.login}, pid {self.pid})"


@dataclass(frozen=True, slots=True)
class Hidden:
    """How many sessions our login may not look at."""

    count: int
    login: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A transaction that was prepared and neither committed nor rolled back."""

    name: str
    owner: str
    seconds: float


@dataclass(frozen=True, slots=True)
class ReplicationSlot:
    name: str
    is_active: bool
    holds_ids: bool
    wal_bytes: int


@dataclass(frozen=True, slots=True)
class Standby:
    """A standby that keeps rows for its queries, since so many transactions."""

    name: str
    age: int


@dataclass(frozen=True, slots=True)
class Connections:
    used: int
    ours: int
    allowed: int


@dataclass(frozen=True, slots=True)
class LockWait:
    """A session that waits for a lock on one of our tables, and the first that holds it up."""

    pid: int
    table: str
    seconds: float
    blocker: int | None
    blocker_application: str | None
    blocker_query: str | None


def transactions(known: Sequence[Transaction], hidden: Hidden) -> list[Finding]:
    found = [
        Finding(
            "D03",
            severity,
            f"a transaction of {each.who} has been open for {span(each.seconds)}",
            _HELD,
            f"select pg_terminate_backend({each.pid});",
        )
        for each in known
        if (severity := graded(each.seconds, _LONG_SECONDS, _TOO_LONG_SECONDS)) is not None
    ]
    return found + hidden_sessions(hidden)


def hidden_sessions(hidden: Hidden) -> list[Finding]:
    if not hidden.count:
        return []
    return [
        Finding(
            "D03",
            Severity.NOTE,
            f"{hidden.count:,} sessions of other logins cannot be seen",
            "their transactions and locks are missing in this report",
            f"grant pg_read_all_stats to {hidden.login};  -- as an administrator",
        )
    ]


def idle_transactions(known: Sequence[Transaction], settings: Settings) -> list[Finding]:
    found = [
        Finding(
            "D04",
            Severity.WARNING,
            f"{each.who} has left its transaction idle for {span(each.idle_seconds)}",
            "it keeps its locks, and " + _HELD,
            f"select pg_terminate_backend({each.pid});",
        )
        for each in known
        if each.is_idle and each.idle_seconds > _IDLE_SECONDS
    ]
    if settings.get("idle_in_transaction_session_timeout") == "0":
        found.append(
            Finding(
                "D04",
                Severity.NOTE,
                "idle_in_transaction_session_timeout is 0",
                "a client that forgets its transaction keeps it open for ever",
                "alter system set idle_in_transaction_session_timeout = '10min'; "
                "select pg_reload_conf();",
            )
        )
    return found


def prepared(known: Sequence[Prepared]) -> list[Finding]:
    return [
        Finding(
            "D05",
            Severity.CRITICAL,
            f"{each.owner} prepared transaction {each.name} {span(each.seconds)} ago",
            "nobody has ended it; it keeps its locks, and " + _HELD,
            f"rollback prepared {literal(each.name)};  -- or commit prepared",
        )
        for each in known
        if each.seconds > _PREPARED_SECONDS
    ]


def replication_slots(known: Sequence[ReplicationSlot]) -> list[Finding]:
    found = []
    for each in known:
        advice = f"select pg_drop_replication_slot({literal(each.name)});  -- or start its consumer"
        if each.wal_bytes > _MUCH_WAL:
            fact = f"replication slot {each.name} keeps {size(each.wal_bytes)} of WAL"
            meaning = "the disk of the server fills up"
            found.append(Finding("D06", Severity.CRITICAL, fact, meaning, advice))
        elif each.holds_ids and not each.is_active:
            fact = f"replication slot {each.name} is inactive and keeps old rows"
            found.append(Finding("D06", Severity.WARNING, fact, _HELD, advice))
    return found


def standbys(known: Sequence[Standby]) -> list[Finding]:
    return [
        Finding(
            "D07",
            severity,
            f"standby {each.name} keeps rows since {each.age:,} transactions",
            "hot_standby_feedback is on there: " + _HELD,
            "end long queries on the standby, or set hot_standby_feedback = off there",
        )
        for each in known
        if (severity := graded(each.age, _OLD_IDS, _TOO_OLD_IDS)) is not None
    ]


def connections(counted: Connections) -> list[Finding]:
    share = counted.used / max(counted.allowed, 1)
    severity = graded(share, _FULL, _TOO_FULL)
    if severity is None:
        return []
    return [
        Finding(
            "D09",
            severity,
            f"{counted.used:,} of {counted.allowed:,} connections are used, {counted.ours:,} of "
            "them by Mainspring in this database",
            "when none is left, workers and clients are refused",
            "select application_name, count(*) from pg_stat_activity group by 1 order by 2 desc;",
        )
    ]


def lock_waits(known: Sequence[LockWait]) -> list[Finding]:
    found = []
    for each in known:
        if each.seconds <= _LOCK_SECONDS:
            continue
        by = "another session"
        if each.blocker is not None:
            by = f"pid {each.blocker} ({each.blocker_application or 'a client'})"
        query = f", whose last statement is: {each.blocker_query}" if each.blocker_query else ""
        advice = f"select pg_terminate_backend({each.blocker or each.pid});"
        fact = (
            f"pid {each.pid} has waited for a lock on mainspring.{each.table} for "
            f"{span(each.seconds)}, held by {by}{query}"
        )
        meaning = "whoever needs the same rows or the table waits as well"
        found.append(Finding("D45", Severity.WARNING, fact, meaning, advice))
    return found
