"""`mainspring definitions ...`: see, make and steer what jobs can be."""

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.table import Table

from mainspring.app import Mainspring
from mainspring.cli import output
from mainspring.cli.options import AsJson, DatabaseUrl, DataDir, make_settings, run
from mainspring.cli.schedule_options import read_duration
from mainspring.domain.definitions import Definition, DefinitionState
from mainspring.domain.errors import InvalidOption
from mainspring.domain.types import Kind

definitions = typer.Typer(help="See and steer what jobs can be.", no_args_is_help=True)

Key = Annotated[str, typer.Argument(help="The definition's key.")]
Function = Annotated[
    str | None, typer.Option(help="The SQL function with its schema, such as civic.cleanup.")
]
Role = Annotated[str | None, typer.Option(help="The role it runs under; yours by default.")]
Argv = Annotated[
    str | None,
    typer.Option(help='A command as a JSON list, such as \'["sync", "--id", "{id}"]\'.'),
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


@definitions.command("list")
def list_definitions(
    kind: Annotated[Kind | None, typer.Option(help="Only those of this kind.")] = None,
    active: Annotated[bool | None, typer.Option("--active/--inactive", help="Only these.")] = None,
    after: Annotated[str | None, typer.Option(help="Only keys after this one.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many at the most.")] = 100,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Definitions by key."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    reading = app.definitions.alist(kind=kind, active=active, after=after, limit=limit)
    found = run(app, reading)
    if as_json:
        output.print_json([_facts(state) for state in found])
    elif found:
        output.console.print(_table(found))
    else:
        output.console.print("No definitions.")


@definitions.command()
def show(
    key: Key, as_json: AsJson = False, database_url: DatabaseUrl = None, data_dir: DataDir = None
) -> None:
    """One definition."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    _tell(run(app, app.definitions.aget(key)), None, as_json=as_json)


@definitions.command()
def create(
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
    schema: Schema = None,
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
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Add a definition that needs no code; no worker has to be started anew."""
    given = _read(locals())
    app = Mainspring(settings=make_settings(database_url, data_dir))
    state = run(app, app.definitions.acreate(key, kind, **given))
    _tell(state, "is created", as_json=as_json)


@definitions.command()
def update(
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
    schema: Schema = None,
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
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
) -> None:
    """Change some parts of a definition; jobs that are enqueued already keep what they have."""
    given = _read(locals())
    if not given:
        raise InvalidOption("update", "has nothing to change; give an option, see --help")
    app = Mainspring(settings=make_settings(database_url, data_dir))
    state = run(app, app.definitions.aupdate(key, **given))
    _tell(state, f"is updated, version {state.version}", as_json=as_json)


@definitions.command()
def deactivate(key: Key, database_url: DatabaseUrl = None, data_dir: DataDir = None) -> None:
    """Refuse new jobs; those that are enqueued already still run."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    _tell(run(app, app.definitions.adeactivate(key)), "is deactivated")


@definitions.command()
def activate(key: Key, database_url: DatabaseUrl = None, data_dir: DataDir = None) -> None:
    """Let jobs be enqueued again."""
    app = Mainspring(settings=make_settings(database_url, data_dir))
    _tell(run(app, app.definitions.aactivate(key)), "is active")


_PLAIN = (
    *("function", "role", "working_directory"),
    *("description", "queue", "priority", "max_attempts"),
    *("concurrency", "key_concurrency", "rate", "burst", "limit", "limit_by"),
    "approvals_needed",
)
_LISTS = ("tags", "environment", "success_codes", "fail_codes", "approvers")


def _read(options: dict[str, Any]) -> dict[str, Any]:
    """The fields that were given, from the text they came in."""
    given = {name: options[name] for name in _PLAIN if options[name] is not None}
    for name in ("timeout", "retention", "approval_expiry"):
        if options[name] is not None:
            given[name] = read_duration(name, options[name])
    for name, field in (("schema", "arg_schema"), ("argv", "argv")):
        if options[name] is not None:
            given[field] = _read_json(name, options[name])
    return given | {name: options[name] for name in _LISTS if options[name]}


def _read_json(option: str, text: str) -> Any:
    try:
        return orjson.loads(Path(text[1:]).read_bytes() if text.startswith("@") else text)
    except OSError as error:
        raise InvalidOption(option, f"cannot be read: {error}") from None
    except orjson.JSONDecodeError as error:
        raise InvalidOption(option, f"is not JSON ({error})") from None


def _tell(state: DefinitionState, what: str | None, *, as_json: bool = False) -> None:
    if as_json:
        output.print_json(_facts(state))
    elif what is not None:
        output.console.print(f"Definition {state.key} {what}.", highlight=False)
    else:
        table = Table(box=None, pad_edge=False, show_header=False)
        for name, value in _rows(state):
            table.add_row(name, value)
        output.console.print(table)


def _rows(state: DefinitionState) -> list[tuple[str, str]]:
    definition = state.definition
    rows = [
        ("definition", state.key),
        ("kind", str(definition.kind)),
        ("state", "active" if state.is_active else "inactive: no new jobs"),
        ("version", str(state.version)),
        ("description", definition.description),
        *((name, _text(value)) for name, value in definition.spec.items()),
        ("queue", f"{definition.queue}, priority {definition.priority}"),
        ("attempts", str(definition.max_attempts)),
        ("timeout", output.span(definition.timeout)),
        ("retention", output.span(definition.retention) if definition.retention else ""),
        ("limit", _limits(definition)),
        ("approval", _approval(definition)),
        ("tags", ", ".join(definition.tags)),
        ("schema", _text(definition.arg_schema) if definition.arg_schema else ""),
        ("changed", output.ago(state.updated_at)),
    ]
    return [(name, value) for name, value in rows if value]


def _limits(definition: Definition) -> str:
    parts = [
        (definition.concurrency, "at once"),
        (definition.key_concurrency, "at once per key"),
        (definition.rate, "per key"),
        (definition.limit, "(shared)"),
    ]
    said = [f"{value} {unit}" for value, unit in parts if value is not None]
    by = f", the key is {definition.limit_by}" if definition.limit_by else ""
    return ", ".join(said) + by


def _approval(definition: Definition) -> str:
    if not definition.approvals_needed:
        return ""
    by = ", ".join(definition.approvers) or "anyone"
    expiry = definition.approval_expiry
    return f"{definition.approvals_needed} by {by}" + (
        f", within {output.span(expiry)}" if expiry else ""
    )


def _table(found: list[DefinitionState]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("KEY", "KIND", "VERSION", "QUEUE", "RUNS", "NOTE"):
        table.add_column(name, overflow="ellipsis", no_wrap=name != "NOTE")
    for state in found:
        runs = _runs(state.definition.spec)
        note = state.definition.description if state.is_active else "inactive"
        table.add_row(
            state.key,
            str(state.definition.kind),
            str(state.version),
            state.definition.queue,
            runs,
            note,
        )
    return table


def _runs(spec: Mapping[str, Any]) -> str:
    return str(spec.get("function") or (_text(spec["argv"]) if "argv" in spec else ""))


def _text(value: object) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _facts(state: DefinitionState) -> dict[str, Any]:
    definition = state.definition
    return {
        "key": state.key,
        "kind": definition.kind,
        "version": state.version,
        "is_active": state.is_active,
        "is_system": state.is_system,
        "description": definition.description,
        "queue": definition.queue,
        "priority": definition.priority,
        "max_attempts": definition.max_attempts,
        "timeout": _seconds(definition.timeout),
        "retention": _seconds(definition.retention),
        "concurrency": definition.concurrency,
        "key_concurrency": definition.key_concurrency,
        "rate": definition.rate,
        "burst": definition.burst,
        "limit": definition.limit,
        "limit_by": definition.limit_by,
        "approvals_needed": definition.approvals_needed,
        "approval_expiry": _seconds(definition.approval_expiry),
        "approvers": definition.approvers,
        "arg_schema": definition.arg_schema,
        "spec": definition.spec,
        "tags": definition.tags,
        "created_at": state.created_at,
        "updated_at": state.updated_at,
    }


def _seconds(duration: timedelta | None) -> float | None:
    return None if duration is None else duration.total_seconds()
