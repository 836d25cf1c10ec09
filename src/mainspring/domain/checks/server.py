"""What the settings and the state of the server say: D01, D02, D08, D10, D17 to D22."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta

from mainspring.domain.checks.model import Finding, Severity, graded, size, word

_OLDEST_MAJOR = 15
_MAJOR = 10_000
# Major versions appear in September of their year, minor ones in November, February, May, August.
_YEAR_OF_MAJOR_ZERO = 2007
_FIRST_MONTH, _FIRST_MINOR_MONTH, _QUARTER = 9, 11, 3
_OLD_MINOR = timedelta(days=365)

_IDS_WARNING, _IDS_CRITICAL = 1.0e9, 1.6e9
_IDS_END = 2_000_000_000
_QUEUE_WARNING, _QUEUE_CRITICAL = 0.10, 0.50
_SHORTEST_TIMEOUT_MS = 60_000
_TIMEOUTS = ("statement_timeout", "transaction_timeout", "idle_session_timeout")
_MOST_CHECKPOINTS = 10
_BLOCK = 8192
_SMALL_BUFFERS = 128 * 1024 * 1024
_HIT_RATE, _ENOUGH_BLOCKS = 0.95, 100_000
_DISK_WARNING, _DISK_CRITICAL = 0.15, 0.05

Settings = Mapping[str, str]
SETTINGS = (
    "autovacuum",
    "track_counts",
    "fsync",
    "full_page_writes",
    "synchronous_commit",
    "idle_in_transaction_session_timeout",
    "shared_buffers",
    *_TIMEOUTS,
)
"""The settings that are read; a login's defaults, whatever the session has set since."""


@dataclass(frozen=True, slots=True)
class Ages:
    """How far the oldest transaction and multixact ids of the database are behind."""

    transactions: int
    multixacts: int


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """Since the statistics were reset."""

    timed: int
    requested: int


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk of the embedded server's folder."""

    folder: str
    total: int
    free: int


@dataclass(frozen=True, slots=True)
class Blocks:
    """How many blocks of our tables were found in memory, and how many were read."""

    hit: int
    read: int


def released_about(version: int) -> date:
    """When a minor version came out, by the calendar of the project; rather later than earlier."""
    major, minor = divmod(version, _MAJOR)
    year = _YEAR_OF_MAJOR_ZERO + major
    if minor == 0:
        return date(year, _FIRST_MONTH, 1)
    months = _FIRST_MINOR_MONTH - 1 + (minor - 1) * _QUARTER
    return date(year + months // 12, months % 12 + 1, 15)


def version(number: int, today: date) -> list[Finding]:
    major, minor = divmod(number, _MAJOR)
    name = f"PostgreSQL {major}.{minor}"
    if major < _OLDEST_MAJOR:
        return [
            Finding(
                "D01",
                Severity.CRITICAL,
                f"the server is {name}",
                f"Mainspring needs PostgreSQL {_OLDEST_MAJOR} or newer",
                "upgrade the server, for example with pg_upgrade",
            )
        ]
    released = released_about(number)
    if today - released <= _OLD_MINOR:
        return []
    return [
        Finding(
            "D01",
            Severity.NOTE,
            f"the server is {name}, released about {released:%B %Y}",
            "newer minor versions fix bugs, some of which lose data",
            f"install the newest PostgreSQL {major} and restart the server",
        )
    ]


def autovacuum(settings: Settings) -> list[Finding]:
    return [
        Finding(
            "D02",
            Severity.CRITICAL,
            f"{name} is off",
            "dead rows are never removed, so the queue gets slower and tables grow without bound",
            f"alter system set {name} = on; select pg_reload_conf();",
        )
        for name in ("autovacuum", "track_counts")
        if settings.get(name) == "off"
    ]


def id_ages(ages: Ages) -> list[Finding]:
    counted = (("transaction", ages.transactions), ("multixact", ages.multixacts))
    return [
        Finding(
            "D08",
            severity,
            f"the oldest {kind} id is {age:,} behind",
            f"the server refuses writes before ids run out at {_IDS_END:,}",
            "vacuum (freeze);",
        )
        for kind, age in counted
        if (severity := graded(age, _IDS_WARNING, _IDS_CRITICAL)) is not None
    ]


def notification_queue(share: float) -> list[Finding]:
    severity = graded(share, _QUEUE_WARNING, _QUEUE_CRITICAL)
    if severity is None:
        return []
    return [
        Finding(
            "D10",
            severity,
            f"the queue of notifications is {share:.0%} full",
            "a session that listens does not read; when the queue is full, enqueues fail",
            "select pid, application_name, state, xact_start from pg_stat_activity where datname = "
            "current_database() order by xact_start;  -- then end the session that listens and "
            "does not read: select pg_terminate_backend(pid);",
        )
    ]


def durability(settings: Settings) -> list[Finding]:
    return [
        Finding(
            "D17",
            Severity.CRITICAL,
            f"{name} is off",
            "a crash of the machine can destroy the whole database",
            f"alter system set {name} = on; select pg_reload_conf();",
        )
        for name in ("fsync", "full_page_writes")
        if settings.get(name) == "off"
    ]


def synchronous_commit(settings: Settings) -> list[Finding]:
    if settings.get("synchronous_commit") != "off":
        return []
    return [
        Finding(
            "D18",
            Severity.NOTE,
            "synchronous_commit is off",
            "a crash of the server can lose the last commits, and with them enqueued jobs",
            "alter system set synchronous_commit = on; select pg_reload_conf();",
        )
    ]


def login_timeouts(settings: Settings) -> list[Finding]:
    """In milliseconds; 0 is none, and some exist only in newer versions."""
    return [
        Finding(
            "D19",
            Severity.CRITICAL,
            f"{name} of Mainspring's login is {milliseconds:,} ms",
            "workers and schedulers are cut off in the middle of their work",
            f"alter role current_user set {name} = 0;",
        )
        for name in _TIMEOUTS
        if 0 < (milliseconds := int(settings.get(name) or 0)) < _SHORTEST_TIMEOUT_MS
    ]


def checkpoints(counted: Checkpoints) -> list[Finding]:
    if counted.requested <= max(counted.timed, _MOST_CHECKPOINTS):
        return []
    return [
        Finding(
            "D20",
            Severity.WARNING,
            f"{counted.requested:,} checkpoints were requested and {counted.timed:,} were due",
            "max_wal_size is too small for what is written, which makes every write dearer",
            "alter system set max_wal_size = '4GB'; select pg_reload_conf();",
        )
    ]


def buffers(settings: Settings, blocks: Blocks) -> list[Finding]:
    found = []
    own = int(settings.get("shared_buffers") or 0) * _BLOCK
    if 0 < own < _SMALL_BUFFERS:
        fact = f"shared_buffers is {size(own)}"
        found.append(_memory(fact))
    total = blocks.hit + blocks.read
    if total >= _ENOUGH_BLOCKS and blocks.hit < _HIT_RATE * total:
        fact = f"{blocks.hit / total:.1%} of the blocks of Mainspring's tables were in memory"
        found.append(_memory(fact))
    return found


def _memory(fact: str) -> Finding:
    return Finding(
        "D21",
        Severity.NOTE,
        fact,
        "what is not in memory is read from disk",
        "alter system set shared_buffers = '1GB';  -- then restart the server",
    )


def disk(known: Disk | None) -> list[Finding]:
    """None for a server whose disk cannot be seen."""
    if known is None or not known.total:
        return []
    share = known.free / known.total
    if share >= _DISK_WARNING:
        return []
    return [
        Finding(
            "D22",
            Severity.CRITICAL if share < _DISK_CRITICAL else Severity.WARNING,
            f"{size(known.free)} ({share:.0%}) are free on the disk of {known.folder}",
            "when the disk is full the server stops",
            f"du -sh {word(known.folder)}; df -h {word(known.folder)}",
        )
    ]
