"""`mainspring up`: Start a server, a scheduler, a worker and, if needed, the database.

`mainspring worker`: Run a worker until SIGTERM or Ctrl-C.
`mainspring scheduler`: Run a scheduler until SIGTERM or Ctrl-C; any number may run.
`mainspring server`: Serve the REST API until SIGTERM or Ctrl-C; any number may run.
"""

import asyncio
import gc
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring import __version__, telemetry
from mainspring.app import Mainspring
from mainspring.cli import last_up, output
from mainspring.cli.app_loader import load_app
from mainspring.cli.examples import example
from mainspring.cli.options import ConfigFile, DatabaseUrl, DataDir, make_settings
from mainspring.db import migrate
from mainspring.db.connect import display_url
from mainspring.domain.errors import InputError
from mainspring.domain.housekeeping import QUEUE
from mainspring.domain.types import DEFAULT_QUEUE
from mainspring.runtime import roles, supervisor
from mainspring.runtime.worker.worker import Worker
from mainspring.services import housekeeping
from mainspring.settings.model import NAMES
from mainspring.settings.rules import unknown_variables
from mainspring.telemetry import LogFormat

app = typer.Typer()

if TYPE_CHECKING:
    from mainspring.api.server import Server

AppReference = Annotated[
    str | None,
    typer.Option("--app", help="Your app as module:name; not needed for SQL functions."),
]
Queues = Annotated[
    str | None, typer.Option(help="Queues to work on, comma-separated; the app's by default.")
]
Concurrency = Annotated[
    int | None, typer.Option(help="Maximum number of jobs one process runs at once.")
]
Host = Annotated[str | None, typer.Option(help="Address to listen on.")]
Port = Annotated[int | None, typer.Option(help="Port to listen on; 0 picks a free one.")]
Expose = Annotated[
    bool, typer.Option("--expose", help="Allow listening on an address other machines can reach.")
]
Processes = Annotated[int, typer.Option(min=1, max=64, help="Number of worker processes.")]


@app.command(epilog=example("mainspring worker --app jobs:app --queues mail,default --processes 2"))
def worker(
    app_reference: AppReference = None,
    queues: Queues = None,
    concurrency: Concurrency = None,
    processes: Processes = 1,
    reload: Annotated[bool, typer.Option(help="Restart when a Python file changes.")] = False,
    drain_seconds: Annotated[
        float | None, typer.Option(help="Seconds to wait for running jobs when stopping.")
    ] = None,
    log_format: Annotated[LogFormat, typer.Option(help="Log format.")] = LogFormat.TEXT,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Run a worker until SIGTERM or Ctrl-C."""
    gc.enable()
    telemetry.configure(log_format)
    if processes > 1 or reload:
        command = supervisor.this_command(*_without(sys.argv[1:], "--processes", "--reload"))
        raise typer.Exit(asyncio.run(_supervise(command, processes, reload=reload)))
    app = load_app(app_reference) if app_reference else Mainspring()
    flags = {"concurrency": concurrency, "drain_seconds": drain_seconds}
    _configure(app, database_url, data_dir, **flags)
    try:
        _say_which(app)
        _run(app, _chosen_queues(app, queues), with_scheduler=False)
    finally:
        app.close()


@app.command(epilog=example("mainspring scheduler --app jobs:app"))
def scheduler(
    app_reference: Annotated[
        str | None,
        typer.Option("--app", help="Your app as module:name, for its launchers and schedules."),
    ] = None,
    log_format: Annotated[LogFormat, typer.Option(help="Log format.")] = LogFormat.TEXT,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Run a scheduler until SIGTERM or Ctrl-C; any number may run."""
    gc.enable()
    telemetry.configure(log_format)
    app = load_app(app_reference) if app_reference else Mainspring()
    _configure(app, database_url, data_dir)
    try:
        _say_which(app)
        _run(app, (), with_scheduler=True)
    finally:
        app.close()


@app.command(epilog=example("mainspring up --app jobs:app"))
def up(
    app_reference: Annotated[
        str | None, typer.Option("--app", help="Your app as module:name.")
    ] = None,
    concurrency: Concurrency = None,
    host: Host = None,
    port: Port = None,
    expose: Expose = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Start a server, a scheduler, a worker and, if needed, the database."""
    from mainspring.cli.consoles import Console

    gc.enable()
    telemetry.configure()
    app = load_app(app_reference) if app_reference else Mainspring()
    flags = {"concurrency": concurrency, "host": host, "port": port}
    _configure(app, database_url, data_dir, **flags)
    try:
        server = _make_server(app, is_exposed=expose, takes_any_port=True)
        output.console.print(f"Mainspring {__version__}", style="bold", highlight=False)
        asyncio.run(migrate.migrate(app.database.url))
        _print_started(app, app_reference)
        asyncio.run(_print_server(app, server))
        console = Console(app, server.url)
        app.blocking(console.open())
        try:
            _print_examples(app, _where(app) if console.where is None else console.where)
            output.console.print("Ctrl-C stops it.")
            others = (server, console)
            _run(app, _chosen_queues(app, None), with_scheduler=True, others=others)
        finally:
            app.blocking(console.close())
    finally:
        app.close()


@app.command("server", epilog=example("mainspring server --port 8080"))
def serve(
    app_reference: AppReference = None,
    host: Host = None,
    port: Port = None,
    expose: Expose = False,
    log_format: Annotated[LogFormat, typer.Option(help="Log format.")] = LogFormat.TEXT,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Serve the REST API until SIGTERM or Ctrl-C; any number may run."""
    gc.enable()
    telemetry.configure(log_format)
    app = load_app(app_reference) if app_reference else Mainspring()
    _configure(app, database_url, data_dir, host=host, port=port)
    try:
        server = _make_server(app, is_exposed=expose)
        asyncio.run(_print_server(app, server))
        _say_which(app)
        _run(app, (), with_scheduler=False, others=(server,))
    finally:
        app.close()


def _configure(
    app: Mainspring, database_url: str | None, data_dir: Path | None, **flags: Any
) -> None:
    """Also warns of mistyped variables, which would have no effect."""
    app.use(make_settings(database_url, data_dir, base=app.settings, **flags))
    for doubt in unknown_variables(os.environ, NAMES):
        telemetry.event("setting_unknown", problem=doubt.message)


def _say_which(app: Mainspring) -> None:
    """Name an embedded database once it runs, unless it is the one of a running `up`."""
    if app.database.is_embedded and app.database.url:
        last_up.say_which(app.database)


def _make_server(app: Mainspring, *, is_exposed: bool, takes_any_port: bool = False) -> "Server":
    from mainspring.app.server import make_server

    return make_server(
        app.database,
        version=__version__,
        is_exposed=is_exposed,
        takes_any_port=takes_any_port,
    )


async def _print_server(app: Mainspring, server: "Server") -> None:
    """Where the server is, and at the very first start how to log in."""
    from mainspring.app.server import first_login, prepare

    try:
        await prepare(app.database)
        code = await first_login(app.database)
    finally:
        await app.database.close_loop()
    line = output.console.print
    line(f"  server    {server.url}", highlight=False, soft_wrap=True)
    if code is not None:
        line("  login     one-time link for the new operator:", highlight=False)
        base = (app.settings.public_url or server.url).rstrip("/")
        line(f"            {base}/login?code={code}", highlight=False, soft_wrap=True)


def _run(
    app: Mainspring,
    queues: tuple[str, ...],
    *,
    with_scheduler: bool,
    others: Sequence[roles.Role] = (),
) -> None:
    """A worker for the queues, unless there are none, a scheduler if asked for, and others."""
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        worker = runner.run(_serve(app, queues, with_scheduler=with_scheduler, others=others))
    if worker is not None:
        roles.leave(worker)


async def _serve(
    app: Mainspring,
    queues: tuple[str, ...],
    *,
    with_scheduler: bool,
    others: Sequence[roles.Role],
) -> Worker | None:
    await app.schedules.aprepare()
    with_schedules = with_scheduler and app.settings.default_schedules
    await housekeeping.install(app.database, with_schedules=with_schedules)
    worker = _make_worker(app, queues) if queues else None
    # Whatever was imported stays; looking through it for garbage costs a busy worker a good part of
    # its time. Not even once: that takes a tenth of a worker's start, and finds next to nothing.
    gc.freeze()
    scheduler = app.schedules.scheduler() if with_scheduler else None
    await roles.run(worker, scheduler, *others)
    await app.database.close_loop()
    return worker


def _make_worker(app: Mainspring, queues: tuple[str, ...]) -> Worker:
    return Worker(
        app.database.url,
        app.handlers,
        queues=tuple(sorted({*queues, QUEUE})),
        settings=app.settings,
        enqueuer=app,
        version=__version__,
    )


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


async def _supervise(command: list[str], processes: int, *, reload: bool) -> int:
    if reload:
        return await supervisor.reload_on_change(command, Path.cwd())
    return await supervisor.Supervisor(command, count=processes).run()


def _without(arguments: list[str], *names: str) -> list[str]:
    """The command line less the options that are the supervisor's."""
    kept: list[str] = []
    skip_value = False
    for argument in arguments:
        if skip_value:
            skip_value = False
        elif argument == "--processes":
            skip_value = True
        elif argument.partition("=")[0] not in names and argument != "--no-reload":
            kept.append(argument)
    return kept


def _chosen_queues(app: Mainspring, queues: str | None) -> tuple[str, ...]:
    if queues is None:
        # Definitions without code have this queue unless they name another.
        return tuple(sorted({*app.queues, DEFAULT_QUEUE}))
    chosen = tuple(name.strip() for name in queues.split(",") if name.strip())
    if not chosen:
        raise InputError("--queues names no queue; give at least one")
    return chosen


def _print_started(app: Mainspring, app_reference: str | None) -> None:
    line = output.console.print
    url = display_url(app.database.url)
    if app.database.is_embedded:
        line(f"  database  embedded PostgreSQL in {app.database.data_dir}", highlight=False)
        line(f"            {url}", highlight=False, soft_wrap=True)
    else:
        line(f"  database  {url}", highlight=False, soft_wrap=True)
    line(f"  scheduler fires the schedules of this database{_declared(app)}", highlight=False)
    queues = ", ".join(_chosen_queues(app, None))
    if not app.handlers:
        line(f"  worker    SQL functions (queue {queues}); your own jobs: --app module:name")
    else:
        known = ", ".join(sorted(app.handlers))
        line(f"  worker    {app_reference}: {known} (queues {queues})")


def _declared(app: Mainspring) -> str:
    names = sorted(name for _, name in app.schedules.declared)
    return f"; the app declares {', '.join(names)}" if names else ""


def _print_examples(app: Mainspring, where: str) -> None:
    """Commands to try, with the options by which they come here."""
    if not app.handlers:
        return
    line = output.console.print
    first = sorted(app.handlers)[0]
    call = _program()
    payload = app.example_payload(first)
    every = f"--definition {first} --payload '{payload}' --cron '* * * * *'"
    line("  try       in another terminal:", highlight=False)
    for words in (
        f"enqueue {first} '{payload}'",
        "jobs list",
        f"schedules create every-minute {every}",
        "schedules list",
    ):
        line(f"            {call} {words}{where}", markup=False, soft_wrap=True)


def _program() -> str:
    """How to call this program from here: in a fresh clone it is not on the path."""
    if shutil.which("mainspring"):
        return "mainspring"
    program = Path(sys.argv[0])
    if program.name != "mainspring":
        return f"{sys.executable} -m mainspring"
    return os.path.relpath(program)


def _where(app: Mainspring) -> str:
    """The options by which another command finds the same database."""
    if app.settings.database_url is not None:
        return "" if "MAINSPRING_DATABASE_URL" in os.environ else " --database-url ..."
    if app.settings.data_dir is None or "MAINSPRING_DATA_DIR" in os.environ:
        return ""
    return f" --data-dir {shlex.quote(str(app.settings.data_dir))}"
