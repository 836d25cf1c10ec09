"""Every setting with its unit, default and range, and what is wrong with a value it cannot have."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationInfo,
    field_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from mainspring.domain.secrets.keys import read_keys
from mainspring.settings import rules

# Lists that are one text; a file may have an array instead.
SEPARATORS = {
    "allowed_hosts": ",",
    "command_directories": ":",
    "command_environment": ",",
    "encryption_keys": ",",
    "prune_tables": ",",
    "role_urls": " ",
    "trusted_proxies": ",",
}
# Shown to nobody as they are.
SECRETS = frozenset(
    {
        *("database_url", "condition_database_url", "role_urls"),
        *("encryption_keys", "oidc_client_secret"),
    }
)
_LONGEST_SHOWN = 80
_OTHER_KIND = PydanticCustomError("other_kind", "another kind of value")

_OWN = ("127.0.0.1", "::1", "localhost")


class Settings(BaseModel):
    """Every setting with its unit, default and range; see docs/reference/settings.md."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    # A URL may hold a password.
    database_url: str | None = Field(
        default=None,
        repr=False,
        description="PostgreSQL 15+ URL; if unset, the embedded server is used",
    )
    data_dir: Path | None = Field(
        default=None, description="where the embedded server keeps its data"
    )
    concurrency: int = Field(
        default=100, ge=1, le=10_000, description="jobs one worker process runs at a time"
    )
    prefetch: int = Field(
        default=2000, ge=0, le=10_000, description="most jobs claimed before a runner is free"
    )
    pool_size: int = Field(
        default=20,
        ge=1,
        le=1000,
        description="handlers of one worker process that may be inside ctx.transaction() at a time",
    )
    lease_seconds: float = Field(
        default=15, ge=1, le=3600, description="how long a silent worker keeps its jobs"
    )
    poll_seconds: float = Field(
        default=1, ge=0.05, le=60, description="how often an idle worker polls for jobs"
    )
    drain_seconds: float = Field(
        default=30, ge=0, le=3600, description="how long a stopping worker waits for its jobs"
    )
    cancel_grace_seconds: float = Field(
        default=10, ge=0, le=3600, description="time a canceled handler has before it is killed"
    )
    max_losses: int = Field(
        default=3, ge=1, le=100, description="deaths of its own process after which a job is parked"
    )
    max_payload_bytes: int = Field(
        default=1024 * 1024, ge=1024, le=64 * 1024 * 1024, description="largest payload accepted"
    )
    unknown_handler: str = Field(
        default="wait",
        pattern="^(wait|fail)$",
        description="what a worker does with a job whose definition it does not know",
    )
    condition_concurrency: int = Field(
        default=10, ge=1, le=100, description="conditions one scheduler checks at a time"
    )
    condition_database_url: str | None = Field(
        default=None,
        repr=False,
        description="separate, less privileged login for conditions written in SQL",
    )
    role_urls: SecretStr = Field(
        default=SecretStr(""),
        description="database URLs that log in as the roles of SQL definitions and conditions, as "
        "role=URL, separated by spaces; without one the role logs in without a password",
    )
    command_directories: str = Field(
        default="",
        description="directories with programs that commands may run, separated by colons; if "
        "unset, this worker runs no commands",
    )
    command_environment: str = Field(
        default="PATH,HOME,LANG,TZ",
        description="environment variables that commands may use, separated by commas",
    )
    encryption_keys: SecretStr = Field(
        default=SecretStr(""),
        description="keys for the secrets in payloads, separated by commas; the first encrypts, "
        "all decrypt",
    )
    prune_tables: str = Field(
        default="",
        description="columns that jobs may prune by age, as schema.table.column, separated by "
        "commas; if unset, this worker prunes only Mainspring's own tables",
    )
    default_schedules: bool = Field(
        default=True,
        description="whether the first scheduler of a database adds the housekeeping schedules",
    )
    slot_retention_days: float = Field(
        default=90, ge=1, le=36_500, description="how long schedule slots are kept"
    )
    event_retention_days: float = Field(
        default=30, ge=1, le=36_500, description="how long handled events are kept"
    )
    host: str = Field(
        default="127.0.0.1",
        description="address the server listens on; one that other machines can reach requires "
        "--expose",
    )
    port: int = Field(
        default=8080, ge=0, le=65535, description="port the server listens on; 0 picks a free one"
    )
    max_request_bytes: int = Field(
        default=8 * 1024 * 1024,
        ge=1024,
        le=256 * 1024 * 1024,
        description="largest request that the server accepts",
    )
    requests_per_minute: int = Field(
        default=60_000,
        ge=0,
        le=10_000_000,
        description="requests that one caller may send to one server process; 0 is unlimited",
    )
    max_connections: int = Field(
        default=2_000,
        ge=10,
        le=1_000_000,
        description="connections that one server process accepts",
    )
    max_connections_per_address: int = Field(
        default=500,
        ge=1,
        le=1_000_000,
        description="connections of one client address, unless it is a trusted proxy",
    )
    public_url: str | None = Field(
        default=None,
        description="public URL of the server, if it is behind a proxy",
    )
    allowed_hosts: str = Field(
        default="",
        description="other host names that requests may use, such as *.example.com, separated by "
        "commas",
    )
    trusted_proxies: str = Field(
        default="",
        description="addresses of proxies, such as 10.0.0.0/8, whose X-Forwarded-For is believed, "
        "separated by commas",
    )
    oidc_issuer: str | None = Field(
        default=None, description="URL of the OpenID Connect provider that people log in with"
    )
    oidc_client_id: str | None = Field(
        default=None, description="client id of this server at the provider"
    )
    oidc_client_secret: SecretStr = Field(
        default=SecretStr(""), description="client secret of this server at the provider"
    )
    oidc_claim: str = Field(
        default="email",
        min_length=1,
        max_length=100,
        description="ID token claim that is the person's name in Mainspring",
    )
    use_pooler: bool = Field(
        default=False, description="the database URL points to a pooler in transaction mode"
    )
    log_jobs: str = Field(
        default="failures",
        pattern="^(none|failures|all)$",
        description="which jobs a worker logs: none, attempts that fail, or every start and end",
    )
    log_level: str = Field(
        default="info",
        pattern="^(debug|info|warning|error)$",
        description="the least severe log lines that are written",
    )
    log_format: str = Field(
        default="text",
        pattern="^(text|json)$",
        description="how log lines are written; if unset and the app sets up logging itself, they "
        "go to its handlers",
    )

    @field_validator("*", mode="before")
    @classmethod
    def _ensure_kind(cls, value: Any, info: ValidationInfo) -> Any:
        """Joins arrays; refuses what would be taken for something else, or break later."""
        name = info.field_name or ""
        if isinstance(value, list | tuple) and name in SEPARATORS:
            value = _joined(value, SEPARATORS[name])
        if isinstance(value, bool) and cls.model_fields[name].annotation is not bool:
            raise _OTHER_KIND
        if isinstance(value, str) and "\0" in value:
            raise ValueError("it contains a NUL character")
        return value

    @field_validator(
        "database_url", "condition_database_url", "public_url", "oidc_issuer", "oidc_client_id"
    )
    @classmethod
    def _none_if_empty(cls, url: str | None) -> str | None:
        return url or None

    @field_validator("encryption_keys")
    @classmethod
    def _ensure_keys(cls, keys: SecretStr) -> SecretStr:
        read_keys(keys.get_secret_value())
        return keys

    @field_validator("role_urls")
    @classmethod
    def _ensure_role_urls(cls, urls: SecretStr) -> SecretStr:
        rules.urls_of_roles(urls.get_secret_value())
        return urls

    @field_validator("trusted_proxies")
    @classmethod
    def _ensure_networks(cls, proxies: str) -> str:
        for each in rules.split(proxies, ","):
            try:
                ip_network(each, strict=False)
            except ValueError:
                raise ValueError(
                    f"{each!r} is not an address or a network such as 10.0.0.0/8"
                ) from None
        return proxies

    @field_validator("public_url", "oidc_issuer")
    @classmethod
    def _ensure_address(cls, url: str | None, info: ValidationInfo) -> str | None:
        if url is not None:
            host = _host(url)
            if info.field_name == "oidc_issuer" and url.startswith("http:") and host not in _OWN:
                raise ValueError(
                    "must begin with https:, or an eavesdropper could log in as anyone"
                )
        return url

    @property
    def urls_of_roles(self) -> dict[str, str]:
        """By the name of the role."""
        return rules.urls_of_roles(self.role_urls.get_secret_value())

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


def _joined(parts: list[Any] | tuple[Any, ...], separator: str) -> str:
    if not all(isinstance(part, str) and separator not in part for part in parts):
        raise _OTHER_KIND
    return separator.join(parts)


def _host(url: str) -> str:
    """The host of an address that people and programs can be sent to."""
    parts = urlsplit(url)
    is_plain = not (parts.query or parts.fragment or parts.username or parts.password)
    if not parts.hostname or parts.scheme not in ("http", "https") or not is_plain:
        raise ValueError("must be a URL such as https://jobs.example.com")
    return parts.hostname


def range_of(name: str) -> str:
    """Such as `1 to 100`; empty where there is none."""
    facts = Settings.model_fields[name].metadata
    least = next((fact.ge for fact in facts if getattr(fact, "ge", None) is not None), None)
    most = next((fact.le for fact in facts if getattr(fact, "le", None) is not None), None)
    if least is not None and most is not None:
        return f"{_number(least)} to {_number(most)}"
    pattern = next((fact.pattern for fact in facts if getattr(fact, "pattern", None)), None)
    return pattern.strip("^()$").replace("|", ", ") if pattern else ""


def complaint(name: str, error: ErrorDetails) -> str:
    if error["type"] == "value_error":
        return f"setting {name}: {str(error['msg']).removeprefix('Value error, ')}"
    if name in SECRETS:
        return f"setting {name} is not {_kind(name)}"
    from mainspring.domain.secrets.redaction import redact_patterns  # noqa: PLC0415 - slow to import

    shown = redact_patterns(repr(error["input"]))
    if len(shown) > _LONGEST_SHOWN:
        shown = f"{shown[:_LONGEST_SHOWN]}..."
    return f"setting {name}: {shown} is not {_kind(name)}"


def _kind(name: str) -> str:
    """What the value has to be."""
    kind, span = Settings.model_fields[name].annotation, range_of(name)
    if kind is bool:
        return "true or false"
    if kind in {int, float}:
        return f"a {'whole number' if kind is int else 'number'} from {span}"
    if name in SEPARATORS:
        return f"a string, or an array of strings without {SEPARATORS[name]!r}"
    return f"one of {span}" if span else "a string"


def _number(number: float) -> str:
    return f"{number:,}" if number >= 10_000 else f"{number:g}"


NAMES = frozenset(Settings.model_fields)
