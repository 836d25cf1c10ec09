"""How the database is reached, who may see what in it, and whether it is ours: D23 to D25, D27,
D41."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mainspring.domain.checks.model import Finding, Severity, several, word

_SOON_DAYS = 14
_UNUSED_DAYS = 90


@dataclass(frozen=True, slots=True)
class Backends:
    """The server processes that served one connection, and the one that it was told of when it was
    opened, which through a pooler is another."""

    served: Collection[int]
    announced: int


@dataclass(frozen=True, slots=True)
class Link:
    """The connection to the server."""

    is_encrypted: bool
    is_local: bool
    address: str


@dataclass(frozen=True, slots=True)
class RequestRole:
    """A role that requests of the API may run as."""

    name: str
    is_superuser: bool
    bypasses: bool


@dataclass(frozen=True, slots=True)
class TableSecurity:
    """A table of ours, its owner, and whether row-level security is on."""

    name: str
    owner: str
    has_row_security: bool


@dataclass(frozen=True, slots=True)
class Tampering:
    """What is not as it was shipped: functions of another text, triggers that are gone or off."""

    functions: Sequence[str]
    triggers: Sequence[str]


@dataclass(frozen=True, slots=True)
class TokenAge:
    """A token in use; `days_left` is None without an end."""

    name: str
    role: str
    tenant: str | None
    days_left: float | None
    unused_days: float


def pooler(backends: Backends, *, use_pooler: bool) -> list[Finding]:
    is_shared = len(set(backends.served)) > 1
    is_behind = is_shared or backends.announced not in backends.served
    if is_shared and not use_pooler:
        return [
            Finding(
                "D23",
                Severity.CRITICAL,
                f"{len(set(backends.served))} server processes served one connection",
                "a pooler in transaction mode is between, and Mainspring does not know",
                "export MAINSPRING_USE_POOLER=true  -- for all processes; or use a direct URL",
            )
        ]
    if is_behind and not use_pooler:
        return [
            _pooler_note(
                "a pooler is between Mainspring and the server",
                "in transaction mode it needs use_pooler; in session mode it does not",
                "export MAINSPRING_USE_POOLER=true  -- if it pools transactions",
            )
        ]
    if use_pooler and not is_behind:
        return [
            _pooler_note(
                "use_pooler is on, and the connection is direct",
                "notifications are not used, so that jobs start later than they could",
                "export MAINSPRING_USE_POOLER=false",
            )
        ]
    return []


def _pooler_note(fact: str, meaning: str, advice: str) -> Finding:
    return Finding("D23", Severity.NOTE, fact, meaning, advice)


def encryption(link: Link) -> list[Finding]:
    if link.is_encrypted or link.is_local:
        return []
    return [
        Finding(
            "D24",
            Severity.WARNING,
            f"the connection to the server, from {link.address}, is not encrypted",
            "payloads and the password can be read on the way",
            "add sslmode=verify-full to database_url",
        )
    ]


def row_security(
    roles: Sequence[RequestRole],
    tables: Sequence[TableSecurity],
    *,
    protected: Collection[str],
    owner: str,
) -> list[Finding]:
    """`protected` are the tables that are shipped with row-level security, `owner` whom the schema
    belongs to."""
    found = []
    meaning = "row-level security does not hold: a tenant may see what belongs to another"
    for role in roles:
        if role.is_superuser or role.bypasses:
            right = "superuser" if role.is_superuser else "bypassrls"
            fact = f"requests may run as {role.name}, which has the attribute {right}"
            advice = f"alter role {role.name} nosuperuser nobypassrls;"
            found.append(Finding("D25", Severity.CRITICAL, fact, meaning, advice))
    for table in tables:
        name = f"mainspring.{table.name}"
        if table.name in protected and not table.has_row_security:
            fact = f"row-level security of {name} is off"
            advice = f"alter table {name} enable row level security;"
            found.append(Finding("D25", Severity.CRITICAL, fact, meaning, advice))
        if table.owner != owner:
            fact = f"{name} belongs to {table.owner}, and the schema to {owner}"
            advice = f"alter table {name} owner to {owner};"
            found.append(Finding("D25", Severity.CRITICAL, fact, meaning, advice))
    return found


def schema_state(problem: str | None, tampering: Tampering) -> list[Finding]:
    """`problem` is why this program cannot work with the schema."""
    if problem is not None:
        meaning = "programs of this version refuse to start"
        return [Finding("D27", Severity.CRITICAL, problem, meaning, "mainspring migrate")]
    found = []
    meaning = "what it did for tenant isolation, slots or counts may be missing"
    advice = (
        "update mainspring.installed_functions set digest = '', objects = '{}';  -- then: "
        "mainspring migrate"
    )
    if tampering.functions:
        fact = f"functions that are not as shipped: {several(tampering.functions)}"
        found.append(Finding("D27", Severity.CRITICAL, fact, meaning, advice))
    if tampering.triggers:
        fact = f"triggers that are missing or off: {several(tampering.triggers)}"
        found.append(Finding("D27", Severity.CRITICAL, fact, meaning, advice))
    return found


def changed_functions(
    shipped: Mapping[str, Sequence[str]], present: Mapping[str, Sequence[str]]
) -> list[str]:
    """The names of functions whose texts in the database are not those of this program; by name,
    one text for each of its signatures. What an upgrade leaves beside them does not count."""
    return sorted(
        name for name, texts in shipped.items() if not set(texts) <= set(present.get(name, ()))
    )


def tokens(known: Sequence[TokenAge]) -> list[Finding]:
    found = []
    for each in known:
        left = each.days_left
        if left is not None and left <= _SOON_DAYS:
            fact, meaning = f"expires in {left:.0f} days", "its programs are refused from then on"
            found.append(_token(each, Severity.WARNING, fact=fact, meaning=meaning))
        if each.unused_days > _UNUSED_DAYS:
            fact, meaning = f"was not used for {each.unused_days:.0f} days", "nobody may need it"
            found.append(_token(each, Severity.NOTE, fact=fact, meaning=meaning))
        if left is None and each.role == "operator":
            fact, meaning = "is an operator's and never expires", "who finds it can do everything"
            found.append(_token(each, Severity.NOTE, fact=fact, meaning=meaning))
    return found


def _token(token: TokenAge, severity: Severity, *, fact: str, meaning: str) -> Finding:
    where = f" --tenant {word(token.tenant)}" if token.tenant else ""
    advice = (
        f"mainspring tokens create {word(token.name + '-2')} --role {token.role}{where}; "
        f"mainspring tokens revoke {word(token.name)}{where}"
        if severity is Severity.WARNING
        else f"mainspring tokens revoke {word(token.name)}{where}"
    )
    return Finding("D41", severity, f"token {token.name} {fact}", meaning, advice)
