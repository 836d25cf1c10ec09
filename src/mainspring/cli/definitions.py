"""`mainspring definitions ...`: see, make and steer what jobs can be."""

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer

from mainspring.cli.definition_output import definition_view, definitions_table
from mainspring.cli.options import Limit
from mainspring.cli.output import Out, console
from mainspring.cli.reaching import example, reaching
from mainspring.cli.schedule_options import read_duration
from mainspring.client import Client
from mainspring.domain.errors import InvalidOption
from mainspring.domain.types import Kind

definitions = typer.Typer(help="See and steer what jobs can be.", no_args_is_help=True)

Key = Annotated[str, typer.Argument(help="The definition's key.")]
Function = Annotated[
    str | None, typer.Option(help="The SQL function with its schema, such as civic.cleanup.")
]
Role = Annotated[str | None, typer.Option(help="The role it runs under; the server's by default.")]
Argv = Annotated[
    str | None,
    typer.Option(help='A command as a JSON list, such as \'["sync", "--id", "{id}"]\'; @file.'),
]
Directory = Annotated[str | None, typer.Option("--working-directory", help="Where a command runs.")]
Environment = Annotated[
    list[str] | None,
    typer.Option("--env", help="A variable that a command gets; may be repeated."),
]
SuccessCodes = Annotated[
    list[int] | None,
    typer.Option("--success-code", help="An exit code that is a success; 0 by default."),
]
FailCodes = Annotated[
    list[int] | None,
    typer.Option("--fail-code", help="An exit code after which it is not tried again."),
]
Description = Annotated[str | None, typer.Option(help="What it is for.")]
Queue = Annotated[str | None, typer.Option(help="The queue of its jobs.")]
Priority = Annotated[int | None, typer.Option(help="0 (first) to 1000 (last).")]
MaxAttempts = Annotated[int | None, typer.Option(help="How often a job is tried.")]
Timeout = Annotated[str | None, typer.Option(help="How long a job may run, such as 90s or 1h.")]
Schema = Annotated[
    str | None, typer.Option("--schema", help="JSON Schema of the payload; @file reads a file.")
]
Tags = Annotated[list[str] | None, typer.Option("--tag", help="A tag; may be repeated.")]
Retention = Annotated[
    str | None, typer.Option(help="How long its finished jobs are kept, such as 30d.")
]

Concurrency = Annotated[int | None, typer.Option(help="Most of its jobs that run at once.")]
KeyConcurrency = Annotated[
    int | None, typer.Option(help="Most of its jobs of one key that run at once.")
]
RateOption = Annotated[
    str | None, typer.Option("--rate", help="Most starts of one key, such as 100/minute.")
]
Burst = Annotated[int | None, typer.Option(help="Starts in a row after a rest.")]
LimitName = Annotated[str | None, typer.Option("--limit", help="A limit that it shares.")]
LimitBy = Annotated[
    str | None, typer.Option(help="The field of the payload that is the key, such as user_id.")
]
ApprovalsNeeded = Annotated[
    int | None, typer.Option("--approvals", help="How many have to approve a job.")
]
ApprovalExpiry = Annotated[
    str | None, typer.Option(help="How long an approval is waited for, such as 2d.")
]
Approvers = Annotated[
    list[str] | None, typer.Option("--approver", help="Who may approve; may be repeated.")
]


@definitions.command("list", epilog=example("mainspring definitions list --kind sql"))
@reaching
def list_definitions(
    client: Client,
    out: Out,
    kind: Annotated[Kind | None, typer.Option(help="Only those of this kind.")] = None,
    active: Annotated[bool | None, typer.Option("--active/--inactive", help="Only these.")] = None,
    after: Annotated[str | None, typer.Option(help="Only keys after this one.")] = None,
    limit: Limit = 100,
) -> None:
    """Definitions by key."""
    filters: dict[str, Any] = {"kind": kind, "active": active, "after": after}
    found = client.definitions.list(limit=min(limit, 1000), **filters)
    is_filtered = any(value is not None for value in filters.values())
    nothing = "make one with `mainspring definitions create`, or declare a job in code"
    out.rows(
        list(islice(found, limit)),
        definitions_table,
        nothing="No such definitions." if is_filtered else f"No definitions; {nothing}.",
    )


@definitions.command("show", epilog=example("mainspring definitions show cleanup"))
@reaching
def show(client: Client, out: Out, key: Key) -> None:
    """One definition."""
    out.show(client.definitions.get(key), lambda found: console.print(definition_view(found)))


@definitions.command(
    "create",
    epilog=example(
        "mainspring definitions create cleanup --function civic.cleanup --timeout 5m",
        """mainspring definitions create sync --kind command --argv '["sync", "--id", "{id}"]'""",
    ),
)
@reaching
def create(
    client: Client,
    out: Out,
    key: Key,
    kind: Annotated[Kind, typer.Option(help="What runs its jobs.")] = Kind.SQL,
    function: Function = None,
    role: Role = None,
    argv: Argv = None,
    working_directory: Directory = None,
    environment: Environment = None,
    success_codes: SuccessCodes = None,
    fail_codes: FailCodes = None,
    description: Description = None,
    queue: Queue = None,
    priority: Priority = None,
    max_attempts: MaxAttempts = None,
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
    """Add a definition that needs no code; no worker has to be started anew."""
    made = client.definitions.create(key, kind, **_read(locals()))
    out.say(made, f"Definition {key} is created.")


@definitions.command(
    "update", epilog=example("mainspring definitions update cleanup --timeout 10m --retention 30d")
)
@reaching
def update(
    client: Client,
    out: Out,
    key: Key,
    function: Function = None,
    role: Role = None,
    argv: Argv = None,
    working_directory: Directory = None,
    environment: Environment = None,
    success_codes: SuccessCodes = None,
    fail_codes: FailCodes = None,
    description: Description = None,
    queue: Queue = None,
    priority: Priority = None,
    max_attempts: MaxAttempts = None,
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
        list[str] | None, typer.Option(help="A part to empty, such as rate; may be repeated.")
    ] = None,
) -> None:
    """Change some parts of a definition; jobs that are enqueued already keep what they have."""
    given = dict.fromkeys(_clearable(field) for field in clear or ()) | _read(locals())
    if not given:
        raise InvalidOption("update", "has nothing to change; give an option, see --help")
    changed = client.definitions.update(key, **given)
    out.say(changed, f"Definition {key} is updated, version {changed.version}.")


@definitions.command("deactivate", epilog=example("mainspring definitions deactivate cleanup"))
@reaching
def deactivate(client: Client, out: Out, key: Key) -> None:
    """Refuse new jobs; those that are enqueued already still run."""
    out.say(client.definitions.deactivate(key), f"Definition {key} is deactivated.")


@definitions.command("activate", epilog=example("mainspring definitions activate cleanup"))
@reaching
def activate(client: Client, out: Out, key: Key) -> None:
    """Let jobs be enqueued again."""
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
    *("function", "role", "working_directory"),
    *("description", "queue", "priority", "max_attempts"),
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
        raise InvalidOption(
            "--clear", f"{option!r} is nothing that can be empty; there are {known}"
        )
    return _CLEARABLE[name]


def _read_json(option: str, text: str) -> Any:
    try:
        return orjson.loads(Path(text[1:]).read_bytes() if text.startswith("@") else text)
    except OSError as error:
        raise InvalidOption(option, f"cannot be read: {error}") from None
    except orjson.JSONDecodeError as error:
        raise InvalidOption(option, f"is not JSON ({error})") from None
