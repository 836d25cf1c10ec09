"""Every setting with its unit, default and range, and what is wrong with a value it cannot have."""

from collections.abc import Mapping
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import urlsplit

from mainspring.domain.secrets.keys import read_keys
from mainspring.settings import fields, rules
from mainspring.settings.fields import Field, OtherKindError, SecretText

# Shown to nobody as they are.
SECRETS = frozenset(
    {
        *("database_url", "condition_database_url", "role_urls"),
        *("encryption_keys", "oidc_client_secret"),
    }
)
_LONGEST_SHOWN = 80

_OWN = ("127.0.0.1", "::1", "localhost")


def _host(url: str) -> str:
    """The host of an address that people and programs can be sent to."""
    parts = urlsplit(url)
    is_plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if not parts.hostname or parts.scheme not in ("http", "https") or not is_plain:
        raise ValueError("must be a URL such as https://jobs.example.com")
    return parts.hostname


def _ensure_issuer(url: str) -> None:
    if _host(url) not in _OWN and url.startswith("http:"):
        raise ValueError("must begin with https:, or an eavesdropper could log in as anyone")


def _ensure_networks(proxies: str) -> None:
    for each in rules.split(proxies, ","):
        try:
            ip_network(each, strict=False)
        except ValueError:
            raise ValueError(
                f"{each!r} is not an address or a network such as 10.0.0.0/8"
            ) from None


class WrongValuesError(Exception):
    """Values that settings cannot have: what is wrong, by name, in the order of the settings."""

    def __init__(self, complaints: Mapping[str, str]) -> None:
        super().__init__("; ".join(complaints.values()))
        self.complaints = complaints


class _Model:
    """Reads what it is given by the fields of its class; raises WrongValuesError."""

    given: frozenset[str]

    def __init__(self, **values: Any) -> None:
        complaints = {}
        found = {name: field.default for name, field in FIELDS.items()}
        for name in FIELDS.keys() & values.keys():
            try:
                found[name] = FIELDS[name].value(values[name])
            except (OtherKindError, ValueError) as problem:
                complaints[name] = _complaint(name, values[name], problem)
        if complaints:
            raise WrongValuesError(
                {name: complaints[name] for name in FIELDS if name in complaints}
            )
        if unknown := values.keys() - FIELDS.keys():
            raise TypeError(f"there is no setting {min(unknown)!r}")
        self.__dict__.update(found, given=frozenset(values))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"settings are not changed; use replaced({name}=...)")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Model) and self.values() == other.values()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = (f"{name}={getattr(self, name)!r}" for name in FIELDS if name not in SECRETS)
        return f"{type(self).__name__}({', '.join(shown)})"

    def values(self) -> dict[str, Any]:
        """Of all settings, by name."""
        return {name: self.__dict__[name] for name in FIELDS}

    def given_values(self) -> dict[str, Any]:
        """Of those that are not the default because nobody set them."""
        return {name: self.__dict__[name] for name in FIELDS if name in self.given}

    def replaced(self, **values: Any) -> Self:
        """The same but for these."""
        return type(self)(**{**self.given_values(), **values})


class Settings(_Model):
    """Every setting with its unit, default and range; see docs/reference/settings.md."""

    # A URL may hold a password.
    database_url: str | None = fields.optional_text(
        description="PostgreSQL 15+ URL; if unset, the embedded server is used"
    )
    data_dir: Path | None = fields.path(description="where the embedded server keeps its data")
    concurrency: int = fields.whole(
        100, least=1, most=10_000, description="jobs one worker process runs at a time"
    )
    prefetch: int = fields.whole(
        2000, least=0, most=10_000, description="most jobs claimed before a runner is free"
    )
    pool_size: int = fields.whole(
        20,
        least=1,
        most=1000,
        description="handlers of one worker process that may be inside ctx.transaction() at a time",
    )
    lease_seconds: float = fields.number(
        15, least=1, most=3600, description="how long a silent worker keeps its jobs"
    )
    poll_seconds: float = fields.number(
        1, least=0.05, most=60, description="how often an idle worker polls for jobs"
    )
    drain_seconds: float = fields.number(
        30, least=0, most=3600, description="how long a stopping worker waits for its jobs"
    )
    cancel_grace_seconds: float = fields.number(
        10, least=0, most=3600, description="time a canceled handler has before it is killed"
    )
    max_losses: int = fields.whole(
        3, least=1, most=100, description="deaths of its own process after which a job is parked"
    )
    max_payload_bytes: int = fields.whole(
        1024 * 1024, least=1024, most=64 * 1024 * 1024, description="largest payload accepted"
    )
    unknown_handler: str = fields.choice(
        "wait",
        among=("wait", "fail"),
        description="what a worker does with a job whose definition it does not know",
    )
    condition_concurrency: int = fields.whole(
        10, least=1, most=100, description="conditions one scheduler checks at a time"
    )
    condition_database_url: str | None = fields.optional_text(
        description="separate, less privileged login for conditions written in SQL"
    )
    role_urls: SecretText = fields.secret(
        separator=" ",
        check=rules.urls_of_roles,
        description=(
            "database URLs that log in as the roles of SQL definitions and conditions, as "
            "role=URL, separated by spaces; without one the role logs in without a password"
        ),
    )
    command_directories: str = fields.text(
        "",
        separator=":",
        description=(
            "directories with programs that commands may run, separated by colons; if "
            "unset, this worker runs no commands"
        ),
    )
    command_environment: str = fields.text(
        "PATH,HOME,LANG,TZ",
        separator=",",
        description="environment variables that commands may use, separated by commas",
    )
    encryption_keys: SecretText = fields.secret(
        separator=",",
        check=read_keys,
        description=(
            "keys for the secrets in payloads, separated by commas; the first encrypts, all decrypt"
        ),
    )
    prune_tables: str = fields.text(
        "",
        separator=",",
        description=(
            "columns that jobs may prune by age, as schema.table.column, separated by "
            "commas; if unset, this worker prunes only Mainspring's own tables"
        ),
    )
    default_schedules: bool = fields.switch(
        default=True,
        description="whether the first scheduler of a database adds the housekeeping schedules",
    )
    slot_retention_days: float = fields.number(
        90, least=1, most=36_500, description="how long schedule slots are kept"
    )
    event_retention_days: float = fields.number(
        30, least=1, most=36_500, description="how long handled events are kept"
    )
    tenant_retention_least_days: float = fields.number(
        1, least=0, most=36_500, description="shortest retention that admins of a tenant may set"
    )
    tenant_retention_most_days: float = fields.number(
        730, least=0, most=36_500, description="longest retention that admins of a tenant may set"
    )
    host: str = fields.text(
        "127.0.0.1",
        description=(
            "address the server listens on; one that other machines can reach requires --expose"
        ),
    )
    port: int = fields.whole(
        8080, least=0, most=65535, description="port the server listens on; 0 picks a free one"
    )
    health_port: int = fields.whole(
        0,
        least=0,
        most=65535,
        description=(
            "port on which every process answers /healthz and /readyz from a thread of its own; "
            "0 is none"
        ),
    )
    health_host: str = fields.text(
        "127.0.0.1", description="address that the health port listens on"
    )
    health_file: Path | None = fields.path(
        description="file that a process touches every 5 seconds while it is healthy"
    )
    max_request_bytes: int = fields.whole(
        8 * 1024 * 1024,
        least=1024,
        most=256 * 1024 * 1024,
        description="largest request that the server accepts",
    )
    requests_per_minute: int = fields.whole(
        60_000,
        least=0,
        most=10_000_000,
        description="requests that one caller may send to one server process; 0 is unlimited",
    )
    max_connections: int = fields.whole(
        2_000, least=10, most=1_000_000, description="connections that one server process accepts"
    )
    max_connections_per_address: int = fields.whole(
        500,
        least=1,
        most=1_000_000,
        description="connections of one client address, unless it is a trusted proxy",
    )
    public_url: str | None = fields.optional_text(
        check=_host, description="public URL of the server, if it is behind a proxy"
    )
    allowed_hosts: str = fields.text(
        "",
        separator=",",
        description=(
            "other host names that requests may use, such as *.example.com, separated by commas"
        ),
    )
    trusted_proxies: str = fields.text(
        "",
        separator=",",
        check=_ensure_networks,
        description=(
            "addresses of proxies, such as 10.0.0.0/8, whose X-Forwarded-For is believed, "
            "separated by commas"
        ),
    )
    oidc_issuer: str | None = fields.optional_text(
        check=_ensure_issuer,
        description="URL of the OpenID Connect provider that people log in with",
    )
    oidc_client_id: str | None = fields.optional_text(
        description="client id of this server at the provider"
    )
    oidc_client_secret: SecretText = fields.secret(
        description="client secret of this server at the provider"
    )
    oidc_claim: str = fields.text(
        "email", longest=100, description="ID token claim that is the person's name in Mainspring"
    )
    use_pooler: bool = fields.switch(
        default=False, description="the database URL points to a pooler in transaction mode"
    )
    log_jobs: str = fields.choice(
        "failures",
        among=("none", "failures", "all"),
        description="which jobs a worker logs: none, attempts that fail, or every start and end",
    )
    log_level: str = fields.choice(
        "info",
        among=("debug", "info", "warning", "error"),
        description="the least severe log lines that are written",
    )
    log_format: str = fields.choice(
        "text",
        among=("text", "json"),
        description=(
            "how log lines are written; if unset and the app sets up logging itself, they "
            "go to its handlers"
        ),
    )

    @property
    def urls_of_roles(self) -> dict[str, str]:
        """By the name of the role."""
        return rules.urls_of_roles(self.role_urls.reveal())

    @property
    def command_paths(self) -> tuple[Path, ...]:
        return tuple(Path(text) for text in self.command_directories.split(":") if text)

    @property
    def command_variables(self) -> tuple[str, ...]:
        return rules.split(self.command_environment, ",")

    @property
    def host_names(self) -> tuple[str, ...]:
        return rules.split(self.allowed_hosts.lower(), ",")

    @property
    def proxy_networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        return tuple(
            ip_network(each, strict=False) for each in rules.split(self.trusted_proxies, ",")
        )

    @property
    def prunable_columns(self) -> tuple[str, ...]:
        return rules.split(self.prune_tables, ",")


FIELDS: Mapping[str, Field] = MappingProxyType(fields.fields_of(Settings))
NAMES = frozenset(FIELDS)


def range_of(name: str) -> str:
    """Such as `1 to 100`; empty where there is none."""
    field = FIELDS[name]
    if field.least is not None and field.most is not None:
        return f"{_number(field.least)} to {_number(field.most)}"
    return ", ".join(field.choices)


def _complaint(name: str, value: Any, problem: Exception) -> str:
    if isinstance(problem, ValueError):
        return f"setting {name}: {problem}"
    if name in SECRETS:
        return f"setting {name} is not {_kind(name)}"
    from mainspring.domain.secrets.redaction import redact_patterns  # noqa: PLC0415 - slow to import

    shown = redact_patterns(repr(value))
    if len(shown) > _LONGEST_SHOWN:
        shown = f"{shown[:_LONGEST_SHOWN]}..."
    return f"setting {name}: {shown} is not {_kind(name)}"


def _kind(name: str) -> str:
    """What the value has to be."""
    field, span = FIELDS[name], range_of(name)
    if field.kind is bool:
        return "true or false"
    if field.kind in {int, float}:
        return f"a {'whole number' if field.kind is int else 'number'} from {span}"
    if field.separator is not None:
        return f"a string, or an array of strings without {field.separator!r}"
    return f"one of {span}" if span else "a string"


def _number(number: float) -> str:
    return f"{number:,}" if number >= 10_000 else f"{number:g}"
