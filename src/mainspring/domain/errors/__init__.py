"""Everything Mainspring raises on purpose: a message for people, fields and a code for programs.

MainspringError
├── InputError                 the caller asked for something that cannot be; retrying is useless
│   ├── InvalidPayload         not a JSON object, NUL byte, not serialisable
│   ├── PayloadTooLarge        also a result, checkpoint or progress report
│   ├── InvalidOption          priority, delay, deadline, key ... out of range
│   ├── InvalidDefinition      a handler or definition that cannot be registered
│   ├── UnknownDefinition      no definition has the key
│   │   └── InactiveDefinition the definition was deactivated; in errors.definitions
│   ├── InvalidSchedule        when, what or under which policy it fires cannot be
│   ├── InvalidTemplate        a payload template that cannot be read or rendered
│   ├── InvalidFlow            steps that wait for each other in a circle
│   ├── InvalidEvent           a name or a context that no event can have
│   ├── InvalidTrigger         when or what it enqueues cannot be
│   ├── UnsupportedConnection
│   └── SettingsError
├── ConflictError              the state of the system does not allow it now
│   ├── DuplicateJob           the dedupe key is taken
│   ├── IdempotencyConflict    same idempotency key, other payload
│   ├── IllegalMove
│   ├── DuplicateSchedule      the name is taken
│   ├── SlotClaimed            the slot of a schedule has its job; in errors.slots
│   ├── DuplicateDefinition    the key is taken
│   ├── DuplicateTrigger       the name is taken
│   ├── DuplicateTenant        the name is taken
│   ├── DuplicateToken         the name is taken; this and the next three in errors.access
│   ├── DuplicatePerson        the name is taken
│   ├── AmbiguousName          several tenants have the name
│   ├── ReplayConflict         the key of a create belongs to another request
│   ├── WorkerGone             a worker over the API without its lease; in errors.leases
│   ├── NotAnApprover          someone else has to decide on the job
│   └── LeaseLost              an older lease tried to report; in errors.leases
│       └── LateReport         the same over the API, where it was kept
├── NotFoundError
│   ├── JobNotFound
│   ├── ScheduleNotFound
│   ├── LimitNotFound
│   ├── ErrorGroupNotFound     nothing has failed with the key; in errors.error_groups
│   ├── RetentionNotFound      in errors.retention
│   ├── QueueNotPaused         in errors.queues
│   ├── ApprovalNotFound       the job never asked for approval
│   ├── FlowNotFound
│   ├── EventNotFound
│   ├── TriggerNotFound
│   ├── TenantNotFound
│   ├── TokenNotFound
│   ├── PersonNotFound
│   └── SessionNotFound
├── Unauthenticated            nobody we know is asking; in errors.access
├── Forbidden                  the caller is known, and may not do this
├── UnreadableSecret           an encrypted value, and no key that fits; in errors.secrets
├── ApiError                   the server refused what a client asked; in errors.client
├── ServerUnreachable          no server answered a client; in errors.client
├── ResultTimeout              the job did not finish in the time given
├── JobUnsuccessful            a result was asked of a job that ended otherwise
└── DatabaseError              the database cannot be used as it is; in errors.database
    ├── DatabaseUnreachable
    ├── RoleLoginFailed        nobody can log in as the role of a definition or a condition
    ├── PoolExhausted          every connection of a pool is in use
    ├── ConnectionsBusy        requests of a tenant use all connections they may
    ├── DatabaseTooOld         PostgreSQL below 15
    ├── RightsMissing          the login may not install the schema or serve requests
    ├── InsufficientRights     the login may not use the schema
    ├── SchemaMissing          not migrated
    ├── SchemaOutdated         older than the program
    ├── SchemaTooNew           newer than the program, and no longer works with it
    ├── SchemaUnreleased       made by an unreleased version; cannot be upgraded
    ├── FunctionsOutdated      functions and views are not those of the program
    ├── SchemaLocked           an upgrade could not lock what it changes
    ├── AppRoleMissing         the role that requests of the API run as; in errors.access
    ├── EmbeddedServerError
    └── EmbeddedServerMissing
"""

from collections.abc import Sequence
from typing import ClassVar

from mainspring.domain.errors.hints import hint
from mainspring.domain.types import EventId, JobId, JobState


class MainspringError(Exception):
    """The root; catch it to catch every Mainspring error and nothing else."""

    code: ClassVar[str] = "mainspring_error"


class InputError(MainspringError):
    """The request itself is wrong; sending it again will not help."""

    code = "invalid_input"


class InvalidPayload(InputError):
    """The payload cannot be stored, or `parts` of it, each with its problem, do not fit."""

    code = "invalid_payload"
    parts: Sequence[tuple[str, str]] = ()


class PayloadTooLarge(InputError):
    """A payload, result, checkpoint or progress report is larger than its limit."""

    code = "payload_too_large"

    def __init__(self, size: int, limit: int, *, what: str = "payload") -> None:
        verb = "return" if what == "result" else "pass"
        instead = f"store the data elsewhere and {verb} a reference to it"
        super().__init__(f"the {what} is {size:,} bytes, the limit is {limit:,}; {instead}")
        self.size, self.limit, self.what = size, limit, what


class InvalidOption(InputError):
    """An enqueue option is out of range or contradicts another."""

    code = "invalid_option"

    def __init__(self, option: str, problem: str) -> None:
        super().__init__(f"{option} {problem}")
        self.option, self.problem = option, problem


class InvalidDefinition(InputError):
    """The definition or its handler cannot be registered; `field` is what is wrong, where it is
    known, and `problem` the message without the definition and the field."""

    code = "invalid_definition"

    def __init__(self, message: str, *, field: str | None = None) -> None:
        super().__init__(message)
        self.field = field

    @property
    def problem(self) -> str:
        key, _, rest = str(self).partition(": ")
        problem = rest if rest and " " not in key else str(self)
        return problem.removeprefix(f"{self.field} ")


class UnknownDefinition(InputError):
    """No definition has this key."""

    code = "unknown_definition"

    def __init__(self, key: str, suggestion: str | None = None) -> None:
        what_to_do = "create it, or start a worker that declares it"
        what = f"did you mean {suggestion!r}?" if suggestion else what_to_do
        super().__init__(f"unknown definition {key!r}; {what}")
        self.key, self.suggestion = key, suggestion


class InvalidSchedule(InputError):
    """A part of a schedule is malformed, out of range or contradicts another."""

    code = "invalid_schedule"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem


class InvalidTemplate(InputError):
    """A payload template is malformed, or names a value that does not exist."""

    code = "invalid_template"


class InvalidFlow(InputError):
    """The steps of a flow form a cycle."""

    code = "invalid_flow"


class InvalidEvent(InputError):
    """The name of an event or its context is malformed or too large."""

    code = "invalid_event"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem


class InvalidTrigger(InputError):
    """A part of a trigger is malformed or out of range."""

    code = "invalid_trigger"

    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}")
        self.field, self.problem = field, problem


class UnsupportedConnection(InputError):
    """The object passed as `connection=` is of an unsupported type."""

    code = "unsupported_connection"


class SettingsError(InputError):
    """A setting is unknown, malformed or out of range."""

    code = "invalid_settings"


class ConflictError(MainspringError):
    """The request is valid, but not in the current state."""

    code = "conflict"


class DuplicateJob(ConflictError):
    """A live job, or one inside the window, already has the dedupe key."""

    code = "duplicate_job"

    def __init__(self, dedupe_key: str, job_id: JobId) -> None:
        super().__init__(f"job {job_id} already has the dedupe key {dedupe_key!r}")
        self.dedupe_key, self.job_id = dedupe_key, job_id


class IdempotencyConflict(ConflictError):
    """The idempotency key was already used for a different request."""

    code = "idempotency_conflict"

    def __init__(self, idempotency_key: str, job_id: JobId) -> None:
        super().__init__(
            f"the idempotency key {idempotency_key!r} belongs to job {job_id}, "
            "which has a different definition or payload"
        )
        self.idempotency_key, self.job_id = idempotency_key, job_id


class IllegalMove(ConflictError):
    """The job's current state does not allow the requested one."""

    code = "illegal_move"

    def __init__(self, job_id: JobId, state: JobState, target: JobState | str) -> None:
        super().__init__(f"job {job_id} is {state}; it cannot become {target}")
        self.job_id, self.state, self.target = job_id, state, target


class DuplicateSchedule(ConflictError):
    """The tenant already has a schedule with this name."""

    code = "duplicate_schedule"

    def __init__(self, name: str) -> None:
        super().__init__(f"schedule {name!r} already exists; update it or choose another name")
        self.name = name


class DuplicateDefinition(ConflictError):
    """A definition with this key already exists."""

    code = "duplicate_definition"

    def __init__(self, key: str) -> None:
        super().__init__(f"definition {key!r} already exists")
        self.key = key


class NotAnApprover(ConflictError):
    """The caller may not decide on this job."""

    code = "not_an_approver"

    def __init__(self, job_id: JobId, actor: str, approvers: Sequence[str]) -> None:
        super().__init__(f"{actor} may not decide on job {job_id}; {', '.join(approvers)} may")
        self.job_id, self.actor, self.approvers = job_id, actor, tuple(approvers)


class DuplicateTrigger(ConflictError):
    """The tenant already has a trigger with this name."""

    code = "duplicate_trigger"

    def __init__(self, name: str) -> None:
        super().__init__(f"trigger {name!r} already exists; update it or choose another name")
        self.name = name


class DuplicateTenant(ConflictError):
    """A tenant with this name already exists."""

    code = "duplicate_tenant"

    def __init__(self, tenant_id: str) -> None:
        super().__init__(f"tenant {tenant_id!r} already exists; update it")
        self.tenant_id = tenant_id


class NotFoundError(MainspringError):
    """The object does not exist, or not in this tenant."""

    code = "not_found"


class JobNotFound(NotFoundError):
    """No live or finished job has this id in the tenant."""

    code = "job_not_found"

    def __init__(self, job_id: JobId) -> None:
        super().__init__(f"there is no job {job_id}")
        self.job_id = job_id


class ScheduleNotFound(NotFoundError):
    """The tenant has no schedule of this name."""

    code = "schedule_not_found"

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        super().__init__(f"there is no schedule {name!r}{hint(suggestion)}")
        self.name, self.suggestion = name, suggestion


class LimitNotFound(NotFoundError):
    """No limit has this name."""

    code = "limit_not_found"

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        super().__init__(f"there is no limit {name!r}{hint(suggestion)}")
        self.name, self.suggestion = name, suggestion


class ApprovalNotFound(NotFoundError):
    """The job does not exist, or never required approval."""

    code = "approval_not_found"

    def __init__(self, job_id: JobId) -> None:
        super().__init__(f"job {job_id} did not require approval")
        self.job_id = job_id


class FlowNotFound(NotFoundError):
    """The tenant has no flow with this number."""

    code = "flow_not_found"

    def __init__(self, flow_id: int) -> None:
        super().__init__(f"there is no flow {flow_id}")
        self.flow_id = flow_id


class EventNotFound(NotFoundError):
    """The tenant has no event with this id, or it was pruned."""

    code = "event_not_found"

    def __init__(self, event_id: EventId) -> None:
        super().__init__(f"there is no event {event_id}")
        self.event_id = event_id


class TriggerNotFound(NotFoundError):
    """The tenant has no trigger of this name."""

    code = "trigger_not_found"

    def __init__(self, name: str, suggestion: str | None = None) -> None:
        super().__init__(f"there is no trigger {name!r}{hint(suggestion)}")
        self.name, self.suggestion = name, suggestion


class TenantNotFound(NotFoundError):
    """No tenant has this name."""

    code = "tenant_not_found"

    def __init__(self, tenant_id: str, suggestion: str | None = None) -> None:
        super().__init__(f"there is no tenant {tenant_id!r}{hint(suggestion)}")
        self.tenant_id, self.suggestion = tenant_id, suggestion


class ResultTimeout(MainspringError):
    """The job had not finished when the timeout expired; it continues."""

    code = "result_timeout"

    def __init__(self, job_id: JobId, state: JobState, reason: str = "") -> None:
        why = f": {reason}" if reason else "; the job continues"
        super().__init__(f"timed out waiting for job {job_id}, which is still {state}{why}")
        self.job_id, self.state, self.reason = job_id, state, reason


class JobUnsuccessful(MainspringError):
    """The job ended without success, so it has no result."""

    code = "job_unsuccessful"

    def __init__(self, job_id: JobId, state: JobState, error: str | None) -> None:
        super().__init__(f"job {job_id} is {state}: {error or 'no reason was given'}")
        self.job_id, self.state, self.error = job_id, state, error
