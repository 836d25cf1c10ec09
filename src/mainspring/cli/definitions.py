"""`mainspring definitions`: Manage definitions."""

import json
import shlex
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from mainspring.cli.connection import connected
from mainspring.cli.definition_output import DEFINITIONS, definition_view
from mainspring.cli.durations import read_duration
from mainspring.cli.examples import example
from mainspring.cli.options import Limit
from mainspring.cli.output import Out, console
from mainspring.client import Client
from mainspring.domain.errors import InvalidOption
from mainspring.domain.types import Delivery, Kind

app = typer.Typer()
definitions = typer.Typer(help="Manage definitions.", no_args_is_help=True)
app.add_typer(definitions, name="definitions")

Key = Annotated[str, typer.Argument(help="The definition's key.")]
Function = Annotated[
    str | None, typer.Option(help="SQL function with its schema, e.g. civic.cleanup.")
]
Role = Annotated[str | None, typer.Option(help="Database role to run as; the server's by default.")]
Trusted = Annotated[
    bool | None,
    typer.Option(
        "--trusted/--no-trusted",
        help="Accept that the function runs through Mainspring's own login.",
    ),
]
Argv = Annotated[
    str | None,
    typer.Option(help='A command as a JSON list, such as \'["sync", "--id", "{id}"]\'; @file.'),
]
Directory = Annotated[
    str | None, typer.Option("--working-directory", help="Working directory of a command.")
]
Environment = Annotated[
    list[str] | None,
    typer.Option("--env", help="Environment variable for a command; repeatable."),
]
SuccessCodes = Annotated[
    list[int] | None,
    typer.Option("--success-code", help="Exit code that means success; 0 by default."),
]
FailCodes = Annotated[
    list[int] | None,
    typer.Option("--fail-code", help="Exit code after which the job is not retried."),
]
Description = Annotated[str | None, typer.Option(help="Description.")]
Queue = Annotated[str | None, typer.Option(help="Queue of its jobs.")]
Priority = Annotated[int | None, typer.Option(help="Priority, 0 (first) to 1000 (last).")]
MaxAttempts = Annotated[int | None, typer.Option(help="Maximum number of attempts.")]
DeliveryOption = Annotated[
    Delivery | None, typer.Option("--delivery", help="Whether a job whose worker died runs again.")
]
Timeout = Annotated[str | None, typer.Option(help="Time limit of an attempt, e.g. 90s or 1h.")]
Schema = Annotated[
    str | None, typer.Option("--schema", help="JSON Schema of the payload; @FILE reads a file.")
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="Tag; repeatable.")]
Retention = Annotated[
    str | None, typer.Option(help="How long to keep its finished jobs, e.g. 30d.")
]

Concurrency = Annotated[
    int | None, typer.Option(help="Maximum number of its jobs running at once.")
]
KeyConcurrency = Annotated[
    int | None, typer.Option(help="Maximum number of its jobs per key running at once.")
]
RateOption = Annotated[
    str | None, typer.Option("--rate", help="Maximum rate of starts per key, e.g. 100/minute.")
]
Burst = Annotated[int | None, typer.Option(help="Starts allowed in a burst.")]
LimitName = Annotated[str | None, typer.Option("--limit", help="Name of a shared limit.")]
LimitBy = Annotated[
    str | None, typer.Option(help="Payload field that is the limit key, e.g. user_id.")
]
ApprovalsNeeded = Annotated[
    int | None, typer.Option("--approvals", help="Number of approvals a job needs.")
]
ApprovalExpiry = Annotated[
    str | None, typer.Option(help="Cancel a job not approved within this time, e.g. 2d.")
]
Approvers = Annotated[
    list[str] | None, typer.Option("--approver", help="Person who may approve; repeatable.")
]


@definitions.command("list", epilog=example("mainspring definitions list --kind sql"))
@connected
def list_definitions(
    client: Client,
    out: Out,
    kind: Annotated[
        list[Kind] | None, typer.Option(help="Only definitions of this kind; repeatable.")
    ] = None,
    active: Annotated[
        bool | None,
        typer.Option("--active/--inactive", help="Only active or inactive definitions."),
    ] = None,
    after: Annotated[str | None, typer.Option(help="Only keys after this one.")] = None,
    limit: Limit = 100,
) -> None:
    """List definitions by key."""
    filters: dict[str, Any] = {"kind": kind, "is_active": active, "after": after}
    found = client.definitions.list(limit=min(limit, 1000), **filters)
    is_filtered = any(value is not None for value in filters.values())
    nothing = "create one with `mainspring definitions create`, or declare a job in code"
    out.rows(
        list(islice(found, limit)),
        DEFINITIONS,
        nothing="No matching definitions." if is_filtered else f"No definitions; {nothing}.",
    )


@definitions.command("show", epilog=example("mainspring definitions show cleanup"))
@connected
def show(client: Client, out: Out, key: Key) -> None:
    """Show a definition."""
    out.show(client.definitions.get(key), lambda found: console.print(definition_view(found)))


@definitions.command(
    "create",
    epilog=example(
        "mainspring definitions create cleanup --function civic.cleanup --timeout 5m",
        """mainspring definitions create sync --kind command --argv '["sync", "--id", "{id}"]'""",
        "mainspring definitions create word_count --kind remote --queue node --schema @schema.json",
    ),
)
@connected
def create(
    client: Client,
    out: Out,
    key: Key,
    kind: Annotated[Kind, typer.Option(help="Kind of definition.")] = Kind.SQL,
    function: Function = None,
    role: Role = None,
    trusted: Trusted = None,
    argv: Argv = None,
    working_directory: Directory = None,
    environment: Environment = None,
    success_codes: SuccessCodes = None,
    fail_codes: FailCodes = None,
    description: Description = None,
    queue: Queue = None,
    priority: Priority = None,
    max_attempts: MaxAttempts = None,
    delivery: DeliveryOption = None,
    timeout: Timeout = None,
    arg_schema: Schema = None,
    tags: Tags = None,
    retention: Retention = None,
    concurrency: Concurrency = None,
    key_concurrency: KeyConcurrency = None,
    rate: RateOption = None,
    burst: Burst = None,
    limit: LimitName = None,
    limit_by: LimitBy = None,
    approvals_needed: ApprovalsNeeded = None,
    approval_expiry: ApprovalExpiry = None,
    approvers: Approvers = None,
) -> None:
    """Create a definition that is not declared in Python; running workers pick it up."""
    if argv is not None and kind is not Kind.COMMAND:
        raise InvalidOption("--argv", "needs --kind command")
    made = client.definitions.create(key, kind, **_read(locals()))
    out.say(made, f"Definition {key} is created.")


@definitions.command(
    "update", epilog=example("mainspring definitions update cleanup --timeout 10m --retention 30d")
)
@connected
def update(
    client: Client,
    out: Out,
    key: Key,
    function: Function = None,
    role: Role = None,
    trusted: Trusted = None,
    argv: Argv = None,
    working_directory: Directory = None,
    environment: Environment = None,
    success_codes: SuccessCodes = None,
    fail_codes: FailCodes = None,
    description: Description = None,
    queue: Queue = None,
    priority: Priority = None,
    max_attempts: MaxAttempts = None,
    delivery: DeliveryOption = None,
    timeout: Timeout = None,
    arg_schema: Schema = None,
    tags: Tags = None,
    retention: Retention = None,
    concurrency: Concurrency = None,
    key_concurrency: KeyConcurrency = None,
    rate: RateOption = None,
    burst: Burst = None,
    limit: LimitName = None,
    limit_by: LimitBy = None,
    approvals_needed: ApprovalsNeeded = None,
    approval_expiry: ApprovalExpiry = None,
    approvers: Approvers = None,
    clear: Annotated[
        list[str] | None, typer.Option(help="Field to clear, e.g. rate; repeatable.")
    ] = None,
) -> None:
    """Change a definition; jobs already enqueued keep their options."""
    given = dict.fromkeys(_clearable(field) for field in clear or ()) | _read(locals())
    if not given:
        raise InvalidOption("update", "needs an option that changes something; see --help")
    changed = client.definitions.update(key, **given)
    out.say(changed, f"Definition {key} is updated, version {changed.version}.")


@definitions.command("deactivate", epilog=example("mainspring definitions deactivate cleanup"))
@connected
def deactivate(client: Client, out: Out, key: Key) -> None:
    """Refuse new jobs; jobs already enqueued still run."""
    out.say(client.definitions.deactivate(key), f"Definition {key} is deactivated.")


@definitions.command("activate", epilog=example("mainspring definitions activate cleanup"))
@connected
def activate(client: Client, out: Out, key: Key) -> None:
    """Accept new jobs again."""
    out.say(client.definitions.activate(key), f"Definition {key} is active.")


# By the names of their options; no definition has to have one of these.
_CLEARABLE = {"schema": "arg_schema"} | {
    name: name
    for name in (
        *("working_directory", "retention", "approval_expiry"),
        *("concurrency", "key_concurrency", "rate", "burst", "limit", "limit_by"),
    )
}
_PLAIN = (
    *("function", "role", "trusted", "working_directory"),
    *("description", "queue", "priority", "max_attempts", "delivery"),
    *("concurrency", "key_concurrency", "rate", "burst", "limit", "limit_by"),
    "approvals_needed",
)
_DURATIONS = ("timeout", "retention", "approval_expiry")
_LISTS = ("tags", "environment", "success_codes", "fail_codes", "approvers")


def _read(options: dict[str, Any]) -> dict[str, Any]:
    """The fields that were given, from the text they came in."""
    given = {name: options[name] for name in _PLAIN if options[name] is not None}
    for name in _DURATIONS:
        if options[name] is not None:
            given[name] = read_duration(f"--{name.replace('_', '-')}", options[name])
    for name, option in (("arg_schema", "--schema"), ("argv", "--argv")):
        if options[name] is not None:
            given[name] = _read_json(option, options[name])
    return given | {name: options[name] for name in _LISTS if options[name]}


def _clearable(option: str) -> str:
    name = option.strip("-").replace("-", "_")
    if name not in _CLEARABLE:
        known = ", ".join(sorted(_CLEARABLE))
        raise InvalidOption("--clear", f"{option!r} cannot be cleared; choose from {known}")
    return _CLEARABLE[name]


def _read_json(option: str, text: str) -> Any:
    try:
        return orjson.loads(Path(text[1:]).read_bytes() if text.startswith("@") else text)
    except OSError as error:
        raise InvalidOption(option, f"cannot be read: {error}") from None
    except orjson.JSONDecodeError as error:
        hint = _as_list(text) if option == "--argv" else ""
        raise InvalidOption(option, f"is not JSON ({error}){hint}") from None


def _as_list(command: str) -> str:
    """How a command line is written as arguments."""
    try:
        return f"; write a list: {json.dumps(shlex.split(command))}"
    except ValueError:
        return "; write a list of arguments"
