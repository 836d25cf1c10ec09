"""`mainspring status`: Show processes, who leads the scheduling, and what waits.

`mainspring health`: Check that processes are alive; exit code 0 if so, 1 if not.
"""

from typing import Annotated, Any

import typer
from rich.text import Text

from mainspring.api.models.processes import ProcessModel, StatusModel
from mainspring.cli.columns import Columns
from mainspring.cli.connection import connected
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing, Shown, several
from mainspring.cli.output import Facts, Out, console, remark
from mainspring.cli.times import ago
from mainspring.client import Client
from mainspring.domain.errors.client import ApiError
from mainspring.domain.processes import ProcessKind, missing_kinds

app = typer.Typer()

NO_PROCESSES = "No processes; start them with `mainspring up`."
_REQUIRED = (ProcessKind.WORKER, ProcessKind.SCHEDULER)
_FORBIDDEN = 403
# What an offset of the clock may be before it is worth a look; the round trip is part of it.
_LARGE_OFFSET_MS = 1000

Kind = Annotated[
    ProcessKind | None, typer.Option(help="Check only this role; by default worker and scheduler.")
]


@app.command(epilog=example("mainspring status"))
@connected
def status(client: Client, out: Out) -> None:
    """Show processes, who leads the scheduling, and what waits."""
    found = {"processes": list(client.processes.list()), "status": _status(client)}
    out.show(found, _print)


@app.command(epilog=example("mainspring health --kind scheduler"))
@connected
def health(client: Client, out: Out, kind: Kind = None) -> None:
    """Check that processes are alive; exit code 0 if so, 1 if not."""
    processes = list(client.processes.list(**({} if kind is None else {"kind": kind})))
    missing = missing_kinds(processes, _REQUIRED if kind is None else (kind,))
    reasons = [_reason(each, processes) for each in missing]
    facts = {"status": "failing" if reasons else "ok", "reasons": reasons}
    out.show(facts, _print_health)
    if reasons:
        raise typer.Exit(1)


def _reason(kind: ProcessKind, processes: list[ProcessModel]) -> str:
    seen = [each.seen_at for each in processes if each.kind == kind]
    if not seen:
        return f"no {kind} is known; start one with `mainspring {kind}`"
    return f"no {kind} is alive; the last sign of life was {ago(max(seen))}"


def _print_health(facts: dict[str, Any]) -> None:
    for reason in facts["reasons"] or ["ok"]:
        console.print(reason)


def _status(client: Client) -> StatusModel | None:
    """None for callers of a tenant, who may see only their processes."""
    try:
        return client.processes.status()
    except ApiError as error:
        if error.status != _FORBIDDEN:
            raise
        return None


def _print(found: dict[str, Any]) -> None:
    processes, status = found["processes"], found["status"]
    console.print(PROCESSES(processes)) if processes else remark(NO_PROCESSES)
    if status is None:
        remark("only operators see what waits, and the database")
        return
    console.print()
    console.print(Facts(_facts(status)))


def _facts(status: StatusModel) -> list[tuple[str, Text | str]]:
    leader, oldest = status.leader, status.oldest_event_at
    checked = "" if leader is None or leader.checked_at is None else ago(leader.checked_at)
    led = f"{leader.name}, last check {checked}" if leader else Text("nobody leads", style="red")
    return [
        ("scheduling", led),
        ("oldest waiting event", "none" if oldest is None else f"emitted {ago(oldest)}"),
        *(
            (f"queue {queue.name}", f"its first job became ready {ago(queue.oldest_ready_at)}")
            for queue in status.queues
        ),
        ("database", f"PostgreSQL {status.database_version}, schema {status.schema_number}"),
    ]


def _cells(process: ProcessModel) -> list[Cell]:
    return [
        process.kind,
        process.name,
        _state(process),
        process.seen_at,
        _does(process),
        process.version,
        _offset(process.clock_offset_ms),
        process.host,
    ]


def _state(process: ProcessModel) -> Text:
    if not process.is_alive:
        return Text("silent", style="red")
    if process.is_stopping:
        return Text("stopping", style="yellow")
    return Text("alive", style="green")


def _does(process: ProcessModel) -> Shown | str:
    match process.kind:
        case ProcessKind.WORKER:
            queues = several(process.queues or ())
            runs = f"{process.running or 0} of {process.concurrency or 0}, "
            return Shown(f"{runs}{queues.text}", f"{runs}{queues.whole}")
        case ProcessKind.SCHEDULER:
            return "leads" if process.leads else "stands by"
        case ProcessKind.SERVER:
            return process.address or ""


def _offset(offset_ms: int | None) -> Text | str:
    if offset_ms is None:
        return ""
    return Text(f"{offset_ms:+,} ms", style="red" if abs(offset_ms) >= _LARGE_OFFSET_MS else "")


PROCESSES = Listing(
    Columns(
        names=("KIND", "NAME", "STATE", "SEEN", "DOES", "VERSION", "CLOCK", "HOST"),
        dropped=("HOST", "VERSION", "CLOCK", "DOES"),
    ),
    _cells,
)
