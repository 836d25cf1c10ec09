"""What has become of our tables and indexes: D11 to D16, D28, D29, D46, D48."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from mainspring.domain.checks.model import Finding, Severity, identifier, several, size, span, word

_MANY_DEAD = 100_000
_VACUUMED_WITHIN = 3600
_BLOATED, _LARGE = 20, 256 * 1024 * 1024
_NEW_ROWS, _CHANGED = 1000, 10
_MANY_CHANGES = 10_000
_MANY_ROWS = 1_000_000
_MUCH_SPACE = 1024**3
# What a row of each has without payload.
_WIDTHS: Final[Mapping[str, int]] = {"jobs": 400, "jobs_ready": 100}

Options = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class TableActivity:
    """`vacuumed_seconds_ago` is None if it never was."""

    table: str
    live: int
    dead: int
    vacuumed_seconds_ago: float | None
    is_analyzed: bool
    changed: int


@dataclass(frozen=True, slots=True)
class Relation:
    """A table or an index, with an upper bound of its rows."""

    name: str
    bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class InvalidIndex:
    """An index that no query uses; `is_ours` if a rebuild of ours has left it behind."""

    name: str
    table: str
    is_ours: bool


@dataclass(frozen=True, slots=True)
class Foreign:
    """An index, trigger or rule on a table of ours that is none of ours."""

    kind: str
    name: str
    table: str


@dataclass(frozen=True, slots=True)
class Storage:
    """The storage parameters that a table has, and those it was shipped with."""

    table: str
    present: Options
    shipped: Options

    @property
    def missing(self) -> Options:
        """What to set."""
        return {k: v for k, v in self.shipped.items() if self.present.get(k) != v}

    @property
    def surplus(self) -> list[str]:
        """What to reset."""
        return sorted(self.present.keys() - self.shipped.keys())


@dataclass(frozen=True, slots=True)
class Partitions:
    """Parents without a partition for tomorrow, and with rows of today or later in the default
    one."""

    missing: Sequence[str]
    stray: Sequence[str]


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What retention should have removed: days of history, and keys that have expired."""

    partitions: Sequence[str]
    keys: int


def dead_rows(tables: Sequence[TableActivity]) -> list[Finding]:
    return [
        Finding(
            "D11",
            Severity.WARNING,
            f"mainspring.{each.table} has {each.dead:,} dead rows and {each.live:,} live ones, "
            f"and {_vacuumed(each)}",
            "every statement steps over dead rows; something keeps autovacuum from removing them",
            f"vacuum (verbose) mainspring.{each.table};",
        )
        for each in tables
        if each.dead > _MANY_DEAD and each.dead > each.live and _is_overdue(each)
    ]


def _is_overdue(table: TableActivity) -> bool:
    ago = table.vacuumed_seconds_ago
    return ago is None or ago > _VACUUMED_WITHIN


def _vacuumed(table: TableActivity) -> str:
    ago = table.vacuumed_seconds_ago
    return "was never vacuumed" if ago is None else f"was vacuumed {span(ago)} ago"


def bloat(relations: Sequence[Relation]) -> list[Finding]:
    return [
        Finding(
            "D12",
            Severity.WARNING,
            f"mainspring.{each.name} has {size(each.bytes)} for {each.rows:,} rows",
            "a long transaction has kept dead rows, and the space has not been given back",
            f"reindex index concurrently mainspring.{each.name};"
            if each.name == "jobs_ready"
            else f"vacuum (full) mainspring.{each.name};  -- locks the table meanwhile",
        )
        for each in relations
        if each.bytes > _LARGE and each.bytes > _BLOATED * max(each.rows, 1) * _WIDTHS[each.name]
    ]


def invalid_indexes(indexes: Sequence[InvalidIndex], shipped: frozenset[str]) -> list[Finding]:
    found = []
    for each in indexes:
        if each.name in shipped:
            meaning = "queries that need it scan the table"
            advice = f"reindex index concurrently mainspring.{each.name};"
        else:
            meaning = "every write pays for it, and no query uses it"
            advice = f"drop index concurrently mainspring.{identifier(each.name)};"
            if each.is_ours:
                advice += "  -- or: mainspring doctor --fix --only D13"
        fact = f"index {each.name} on mainspring.{each.table} is invalid"
        found.append(Finding("D13", Severity.WARNING, fact, meaning, advice))
    return found


def foreign_objects(objects: Sequence[Foreign]) -> list[Finding]:
    return [
        Finding(
            "D14",
            Severity.WARNING,
            f"{each.kind} {each.name} on mainspring.{each.table} is not Mainspring's",
            "each index costs about 7 % of the throughput; a trigger or rule runs with every job, "
            "and can make it fail",
            f"drop index mainspring.{identifier(each.name)};"
            if each.kind == "index"
            else f"drop {each.kind} {identifier(each.name)} on mainspring.{each.table};",
        )
        for each in objects
    ]


def storage(tables: Sequence[Storage]) -> list[Finding]:
    return [
        Finding(
            "D15",
            Severity.WARNING,
            f"mainspring.{each.table} has {_options(each.present)}, and was shipped with "
            f"{_options(each.shipped)}",
            "autovacuum comes too late or not at all, or updates leave their page",
            " ".join(storage_statements(each)),
        )
        for each in tables
        if each.missing or each.surplus
    ]


def storage_statements(table: Storage) -> list[str]:
    """What makes the parameters those that were shipped."""
    made = []
    if table.missing:
        made.append(f"alter table mainspring.{table.table} set ({_pairs(table.missing)});")
    if table.surplus:
        made.append(f"alter table mainspring.{table.table} reset ({', '.join(table.surplus)});")
    return made


def _options(options: Options) -> str:
    return _pairs(options) or "no storage parameters"


def _pairs(options: Options) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sorted(options.items()))


def is_unanalyzed(table: TableActivity) -> bool:
    """Whether the planner knows too little of the table."""
    if not table.is_analyzed:
        return table.live >= _NEW_ROWS
    return table.changed > max(_CHANGED * table.live, _MANY_CHANGES)


def statistics(tables: Sequence[TableActivity]) -> list[Finding]:
    return [
        Finding(
            "D16",
            Severity.WARNING,
            f"mainspring.{each.table} has {each.live:,} rows and "
            + (
                f"{each.changed:,} changes since its last analyze"
                if each.is_analyzed
                else "was never analyzed"
            ),
            "the planner guesses, and may choose slow plans",
            f"analyze mainspring.{each.table};",
        )
        for each in tables
        if is_unanalyzed(each)
    ]


def partitions(known: Partitions) -> list[Finding]:
    found = []
    if known.missing:
        fact = f"{several(known.missing)} has no partition for tomorrow"
        meaning = "rows go to the default partition, from where they are removed one by one"
        advice = "select mainspring.ensure_partitions(7);"
        found.append(Finding("D28", Severity.WARNING, fact, meaning, advice))
    if known.stray:
        fact = f"the default partition of {several(known.stray)} has rows of today"
        meaning = "they are kept, and removed one by one when their retention has passed"
        advice = "keep a worker running, which makes partitions a week ahead"
        found.append(Finding("D28", Severity.NOTE, fact, meaning, advice))
    return found


def leftovers(known: Leftovers) -> list[Finding]:
    found = []
    meaning = "a worker removes them every 15 minutes: none runs, or it waits for a lock (see D45)"
    if known.partitions:
        fact = f"{several(known.partitions)} should have been dropped a day ago"
        advice = "mainspring enqueue mainspring.prune_history --wait 60"
        found.append(Finding("D29", Severity.WARNING, fact, meaning, advice))
    if known.keys:
        fact = f"{known.keys:,} idempotency keys and dedupe windows expired more than a day ago"
        advice = "mainspring enqueue mainspring.prune_keys --wait 60"
        found.append(Finding("D29", Severity.WARNING, fact, meaning, advice))
    return found


def unused(limits: Sequence[str], relations: Sequence[Relation]) -> list[Finding]:
    found = []
    if limits:
        fact = f"no definition and no live job uses the limits {several(limits)}"
        advice = f"mainspring limits remove {word(limits[0])}"
        meaning = "they are probably left over"
        found.append(Finding("D46", Severity.NOTE, fact, meaning, advice))
    for each in relations:
        if each.rows > _MANY_ROWS:
            fact = f"mainspring.{each.name} has about {each.rows:,} rows"
            meaning = "so many keys are in use at once; each costs memory and time"
            advice = "use fewer distinct limit keys, or shorter windows and idempotency keys"
            found.append(Finding("D46", Severity.NOTE, fact, meaning, advice))
    return found


def largest(relations: Sequence[Relation], kept: str | None) -> list[Finding]:
    """`kept` says how long history is kept by default; None is for ever."""
    total = sum(each.bytes for each in relations)
    if total <= _MUCH_SPACE:
        return []
    named = ", ".join(f"{each.name} {size(each.bytes)}" for each in relations[:3])
    return [
        Finding(
            "D48",
            Severity.NOTE,
            f"Mainspring's tables have {size(total)}: {named}",
            f"finished jobs are kept for {kept or 'ever'}; dropping older days frees their space",
            "insert into mainspring.retention (keep) values ('30 days');"
            if kept is None
            else "update mainspring.retention set keep = '7 days' where tenant_id is null;",
        )
    ]
