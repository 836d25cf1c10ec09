"""Everything Mainspring raises on purpose.

MainspringError
├── InputError                 the caller asked for something that cannot be; retrying is useless
│   ├── InvalidPayload         not a JSON object, NUL byte, not serialisable
│   ├── PayloadTooLarge
│   ├── InvalidOption          priority, delay, deadline, key ... out of range
│   ├── InvalidDefinition      a handler or definition that cannot be registered
│   ├── UnknownDefinition      no definition has the key, or it is not active
│   ├── InvalidSchedule        when, what or under which policy it fires cannot be
│   ├── InvalidTemplate        a payload template that cannot be read or rendered
│   ├── UnsupportedConnection
│   └── SettingsError
├── ConflictError              the state of the system does not allow it now
│   ├── DuplicateJob           the dedupe key is taken
│   ├── IdempotencyConflict    same idempotency key, other payload
│   ├── IllegalMove
│   ├── DuplicateSchedule      the name is taken
│   ├── DuplicateDefinition    the key is taken
│   ├── DuplicateTenant        the name is taken
│   └── LeaseLost              an older lease tried to report
├── JobNotFound
├── ScheduleNotFound
├── TenantNotFound
├── ResultTimeout              the job did not finish in the time given
├── JobUnsuccessful            a result was asked of a job that ended otherwise
└── DatabaseError              the database cannot be used as it is
    ├── DatabaseUnreachable
    ├── DatabaseTooOld         PostgreSQL below 15
    ├── SchemaMissing          not migrated
    ├── SchemaOutdated         older than the program
    ├── SchemaTooNew           newer than the program
    ├── EmbeddedServerError
    └── EmbeddedServerMissing

The message names the thing and its state for people, the fields carry the same facts for
programs, `code` serves clients.
"""

from collections.abc import Iterator
from typing import ClassVar

from mainspring.domain.types import JobId, JobState


class MainspringError(Exception):
    """The root; catch it to catch all of ours and nothing else."""

    code: ClassVar[str] = "mainspring_error"


class InputError(MainspringError):
    """The request itself is wrong; sending it again will not help."""

    code = "invalid_input"


class InvalidPayload(InputError):
    """The payload is not a JSON object that PostgreSQL can store."""

    code = "invalid_payload"


class PayloadTooLarge(InputError):
    """The payload is larger than the limit; store it elsewhere and pass a reference."""

    code = "payload_too_large"

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"the payload is {size:,} bytes, the limit is {limit:,}; "
            "store the data elsewhere and pass a reference to it"
        )
        self.size, self.limit = size, limit


class InvalidOption(InputError):
    """An option of an enqueue is out of its range or contradicts another."""

    code = "invalid_option"

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"{option} {problem}")
        self.option, self.problem = option, problem


class InvalidDefinition(InputError):
    """The definition or its handler cannot be registered."""

    code = "invalid_definition"


class UnknownDefinition(InputError):
    """No definition has this key."""

    code = "unknown_definition"

    def __init__(self, key: str, suggestion: str | None = None) -> None:
        hint = f"; did you mean {suggestion!r}?" if suggestion else ""
        super().__init__(f"no definition has the key {key!r}{hint}")
        self.key, self.suggestion = key, suggestion


class InvalidSchedule(InputError):
    """A part of a schedule is malformed, out of range or contradicts another."""

    code = "invalid_schedule"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem


class InvalidTemplate(InputError):
    """A payload template is malformed, or names what is not there."""

    code = "invalid_template"


class UnsupportedConnection(InputError):
    """The object given as `connection=` is none of the kinds we can use."""

    code = "unsupported_connection"


class SettingsError(InputError):
    """A setting is unknown, malformed or out of range."""

    code = "invalid_settings"


class ConflictError(MainspringError):
    """What was asked is valid, but not in the present state."""

    code = "conflict"


class DuplicateJob(ConflictError):
    """A live job, or one inside the window, already holds the dedupe key."""

    code = "duplicate_job"

    def __init__(self, dedupe_key: str, job_id: JobId) -> None:
        super().__init__(f"job {job_id} already holds the dedupe key {dedupe_key!r}")
        self.dedupe_key, self.job_id = dedupe_key, job_id


class IdempotencyConflict(ConflictError):
    """The idempotency key was used before for another request."""

    code = "idempotency_conflict"

    def __init__(self, idempotency_key: str, job_id: JobId) -> None:
        super().__init__(
            f"the idempotency key {idempotency_key!r} belongs to job {job_id}, "
            "which has another definition or payload"
        )
        self.idempotency_key, self.job_id = idempotency_key, job_id


class IllegalMove(ConflictError):
    """The job's current state does not allow the requested one."""

    code = "illegal_move"

    def __init__(self, job_id: JobId, state: JobState, target: JobState | str) -> None:
        super().__init__(f"job {job_id} is {state}; it cannot become {target}")
        self.job_id, self.state, self.target = job_id, state, target


class DuplicateSchedule(ConflictError):
    """The tenant has a schedule of this name already."""

    code = "duplicate_schedule"

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a schedule {name!r} already; update it or choose another name")
        self.name = name


class DuplicateDefinition(ConflictError):
    """There is a definition with this key already."""

    code = "duplicate_definition"

    def __init__(self, key: str) -> None:
        super().__init__(f"there is a definition {key!r} already")
        self.key = key


class DuplicateTenant(ConflictError):
    """There is a tenant with this name already."""

    code = "duplicate_tenant"

    def __init__(self, tenant_id: str) -> None:
        super().__init__(f"there is a tenant {tenant_id!r} already; update it")
        self.tenant_id = tenant_id


class LeaseLost(ConflictError):
    """The report came from an older lease; the job belongs to someone else now."""

    code = "lease_lost"

    def __init__(self, job_id: JobId) -> None:
        super().__init__(f"the lease of job {job_id} was lost; nothing it reports counts any more")
        self.job_id = job_id


class JobNotFound(MainspringError):
    """No live or finished job has this id in the tenant."""

    code = "job_not_found"

    def __init__(self, job_id: JobId) -> None:
        super().__init__(f"there is no job {job_id}")
        self.job_id = job_id


class ScheduleNotFound(MainspringError):
    """The tenant has no schedule of this name."""

    code = "schedule_not_found"

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        hint = f"; did you mean {suggestion!r}?" if suggestion else ""
        super().__init__(f"there is no schedule {name!r}{hint}")
        self.name, self.suggestion = name, suggestion


class TenantNotFound(MainspringError):
    """No tenant has this name."""

    code = "tenant_not_found"

    def __init__(self, tenant_id: str, suggestion: str | None = None) -> None:
        hint = f"; did you mean {suggestion!r}?" if suggestion else ""
        super().__init__(f"there is no tenant {tenant_id!r}{hint}")
        self.tenant_id, self.suggestion = tenant_id, suggestion


class ResultTimeout(MainspringError):
    """The job had not finished when the time was up; it goes on."""

    code = "result_timeout"

    def __init__(self, job_id: JobId, state: JobState) -> None:
        super().__init__(f"job {job_id} is still {state}; it goes on, but the time to wait is up")
        self.job_id, self.state = job_id, state


class JobUnsuccessful(MainspringError):
    """The job ended without success, so it has no result."""

    code = "job_unsuccessful"

    def __init__(self, job_id: JobId, state: JobState, error: str | None) -> None:
        super().__init__(f"job {job_id} is {state}: {error or 'no reason was given'}")
        self.job_id, self.state, self.error = job_id, state, error


class DatabaseError(MainspringError):
    """The database cannot be used as it is; the message says what to do."""

    code = "database_error"


class DatabaseUnreachable(DatabaseError):
    """No connection could be made."""

    code = "database_unreachable"


class DatabaseTooOld(DatabaseError):
    """The server is older than PostgreSQL 15."""

    code = "database_too_old"

    def __init__(self, version: str) -> None:
        super().__init__(
            f"the server is PostgreSQL {version}; Mainspring needs PostgreSQL 15 or newer"
        )
        self.version = version


class SchemaMissing(DatabaseError):
    """The database has no Mainspring schema."""

    code = "schema_missing"

    def __init__(self) -> None:
        super().__init__(
            "this database has no Mainspring schema; run `mainspring migrate` against it"
        )


class SchemaOutdated(DatabaseError):
    """The schema is older than the program."""

    code = "schema_outdated"

    def __init__(self, found: int, expected: int) -> None:
        super().__init__(
            f"the database is at migration {found}, this program needs {expected}; "
            "run `mainspring migrate`"
        )
        self.found, self.expected = found, expected


class SchemaTooNew(DatabaseError):
    """The schema was migrated by a newer program."""

    code = "schema_too_new"

    def __init__(self, found: int, expected: int) -> None:
        super().__init__(
            f"the database is at migration {found}, this program knows only up to {expected}; "
            "upgrade Mainspring"
        )
        self.found, self.expected = found, expected


class EmbeddedServerError(DatabaseError):
    """The embedded PostgreSQL could not be started."""

    code = "embedded_server"


class EmbeddedServerMissing(DatabaseError):
    """No database URL was given and the embedded server is not installed."""

    code = "embedded_missing"

    def __init__(self) -> None:
        super().__init__(
            "no database URL is set and the embedded server is not installed; set "
            "MAINSPRING_DATABASE_URL or run `pip install 'mainspring[embedded]'`"
        )


def all_errors(root: type[MainspringError] = MainspringError) -> Iterator[type[MainspringError]]:
    """Every error class, the root first."""
    yield root
    for child in root.__subclasses__():
        yield from all_errors(child)
