"""`mainspring worker`: Run a worker until SIGTERM or Ctrl-C.

`mainspring scheduler`: Run a scheduler until SIGTERM or Ctrl-C; any number may run.
`mainspring server`: Serve the REST API until SIGTERM or Ctrl-C; any number may run.
"""

import asyncio
import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mainspring import __version__, telemetry
from mainspring.app import Mainspring
from mainspring.app.preparation import prepare
from mainspring.cli.app_loader import load_app
from mainspring.cli.config_option import ConfigFile
from mainspring.cli.examples import example
from mainspring.cli.role_health import companions, health_variables
from mainspring.cli.role_options import Concurrency, Expose, Host, Port
from mainspring.cli.role_output import (
    Announcer,
    print_examples,
    print_line,
    scheduler_line,
    where,
    worker_line,
)
from mainspring.cli.settings_options import DatabaseUrl, DataDir, make_settings
from mainspring.db import migrate
from mainspring.domain.errors import InputError
from mainspring.domain.housekeeping import QUEUE
from mainspring.domain.types import DEFAULT_QUEUE
from mainspring.runtime import logs, parent_watch, roles, supervisor
from mainspring.runtime.worker.worker import Worker
from mainspring.services import housekeeping
from mainspring.settings import Settings
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
Format = Annotated[LogFormat | None, typer.Option(help="Log format; text by default.")]
Processes = Annotated[int, typer.Option(min=1, max=64, help="Number of worker processes.")]


@app.command(epilog=example("mainspring worker --app jobs:app --queues mail,default --processes 2"))
def worker(
    app_reference: AppReference = None,
    queues: Queues = None,
    concurrency: Concurrency = None,
    processes: Processes = 1,
    with_scheduler: Annotated[
        bool, typer.Option("--with-scheduler", help="Also fire schedules, without a server.")
    ] = False,
    reload: Annotated[bool, typer.Option(help="Restart when a Python file changes.")] = False,
    drain_seconds: Annotated[
        float | None, typer.Option(help="Seconds to wait for running jobs when stopping.")
    ] = None,
    log_format: Format = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Run a worker until SIGTERM or Ctrl-C."""
    _begin()
    if processes > 1 or reload:
        settings = make_settings(database_url, data_dir, log_format=log_format)
        logs.configure(settings, role="supervisor", version=__version__)
        command = supervisor.this_command(*_without(sys.argv[1:], "--processes", "--reload"))
        raise typer.Exit(asyncio.run(_supervise(command, settings, processes, reload=reload)))
    app = load_app(app_reference) if app_reference else Mainspring()
    flags = {"concurrency": concurrency, "drain_seconds": drain_seconds, "log_format": log_format}
    _configure(app, database_url, data_dir, role="worker", **flags)
    chosen, announcer = _chosen_queues(app, queues), _announcer(app)
    try:
        scheduled = (scheduler_line(app),) if with_scheduler else ()
        announcer.starting(app, worker_line(app, app_reference, chosen), *scheduled)
        _say_which(app)
        _run(app, chosen, with_scheduler=with_scheduler, announcer=announcer)
    finally:
        app.close()


@app.command(epilog=example("mainspring scheduler --app jobs:app"))
def scheduler(
    app_reference: Annotated[
        str | None,
        typer.Option("--app", help="Your app as module:name, for its launchers and schedules."),
    ] = None,
    log_format: Format = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Run a scheduler until SIGTERM or Ctrl-C; any number may run."""
    _begin()
    app = load_app(app_reference) if app_reference else Mainspring()
    _configure(app, database_url, data_dir, role="scheduler", log_format=log_format)
    try:
        announcer = _announcer(app)
        announcer.starting(app, scheduler_line(app))
        _say_which(app)
        _run(app, (), with_scheduler=True, announcer=announcer)
    finally:
        app.close()


def run_all(
    app_reference: str | None,
    database_url: str | None,
    data_dir: Path | None,
    *,
    is_exposed: bool,
    **flags: Any,
) -> None:
    """What `mainspring up` runs."""
    from mainspring.cli import last_up
    from mainspring.cli.consoles import Console

    _begin()
    app = load_app(app_reference) if app_reference else Mainspring()
    _configure(app, database_url, data_dir, role="up", **flags)
    # Your app may have said which database it uses.
    last_up.keep_starting(app.settings)
    try:
        server = _make_server(app, is_exposed=is_exposed, takes_any_port=True)
        chosen, announcer = _chosen_queues(app, None), Announcer()
        announcer.name_program()
        announcer.starting(app, scheduler_line(app), worker_line(app, app_reference, chosen))
        asyncio.run(migrate.migrate(app.database.url))
        announcer.show_roles()
        asyncio.run(_print_server(app, server))
        console = Console(app, server.url)
        app.blocking(console.open())
        try:
            print_examples(app, where(app) if console.where is None else console.where)
            interfaces = (server, console)
            _run(
                app,
                chosen,
                with_scheduler=True,
                interfaces=interfaces,
                announcer=announcer,
                server=server,
            )
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
    log_format: Format = None,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Serve the REST API until SIGTERM or Ctrl-C; any number may run."""
    _begin()
    app = load_app(app_reference) if app_reference else Mainspring()
    flags = {"host": host, "port": port, "log_format": log_format}
    _configure(app, database_url, data_dir, role="server", **flags)
    try:
        server = _make_server(app, is_exposed=expose)
        asyncio.run(_print_server(app, server))
        _say_which(app)
        announcer = _announcer(app)
        _run(
            app,
            (),
            with_scheduler=False,
            interfaces=(server,),
            announcer=announcer,
            server=server,
        )
    finally:
        app.close()


def _begin() -> None:
    """Garbage is collected from here on, but not looked for in what was imported so far."""
    telemetry.guard_streams()
    gc.freeze()
    gc.enable()


def _configure(
    app: Mainspring, database_url: str | None, data_dir: Path | None, *, role: str, **flags: Any
) -> None:
    """Also warns of mistyped variables, which would have no effect."""
    app.use(make_settings(database_url, data_dir, base=app.settings, **flags))
    logs.configure(app.settings, role=role, version=__version__)
    for doubt in unknown_variables(os.environ, NAMES):
        telemetry.event("setting_unknown", problem=doubt.message)


def _announcer(app: Mainspring) -> Announcer:
    """Of several worker processes each would say the same."""
    is_alone = not parent_watch.has_supervisor()
    return Announcer(is_for_people=app.settings.log_format == LogFormat.TEXT and is_alone)


def _say_which(app: Mainspring) -> None:
    """Name an embedded database once it runs, unless it is the one of a running `up`."""
    if app.database.is_embedded and app.database.url:
        from mainspring.cli import last_up

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
    print_line(f"  server    {server.url}")
    if code is not None:
        print_line("  login     one-time link for the new operator:")
        base = (app.settings.public_url or server.url).rstrip("/")
        print_line(f"            {base}/login?code={code}")


def _run(
    app: Mainspring,
    queues: tuple[str, ...],
    *,
    with_scheduler: bool,
    announcer: Announcer,
    interfaces: Sequence[roles.Role] = (),
    server: "Server | None" = None,
) -> None:
    """A worker for the queues, unless there are none, a scheduler if asked for, and interfaces
    that stay open until both have stopped."""
    serving = _serve(
        app,
        queues,
        with_scheduler=with_scheduler,
        announcer=announcer,
        interfaces=interfaces,
        server=server,
    )
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        worker = runner.run(serving)
    if worker is not None:
        roles.leave(worker)


async def _serve(
    app: Mainspring,
    queues: tuple[str, ...],
    *,
    with_scheduler: bool,
    announcer: Announcer,
    interfaces: Sequence[roles.Role],
    server: "Server | None",
) -> Worker | None:
    await prepare(app)
    with_schedules = with_scheduler and app.settings.default_schedules
    await housekeeping.install(app.database, with_schedules=with_schedules)
    worker = _make_worker(app, queues) if queues else None
    # Whatever was imported stays; looking through it for garbage costs a busy worker a good part of
    # its time. Not even once: that takes a tenth of a worker's start, and finds next to nothing.
    gc.freeze()
    scheduler = app.schedules.scheduler() if with_scheduler else None
    vitals = [role.vitals for role in (scheduler, worker) if role is not None]
    beside = companions(app, vitals, server)
    announcer.started()
    await roles.run(
        [] if scheduler is None else [scheduler],
        [] if worker is None else [worker],
        [*interfaces, *beside],
        on_stop=lambda: announcer.stopping(worker, app.settings.drain_seconds),
        on_hurry=announcer.hurrying,
    )
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


async def _supervise(
    command: list[str], settings: Settings, processes: int, *, reload: bool
) -> int:
    if reload:
        return await supervisor.reload_on_change(command, Path.cwd())
    variables = [health_variables(settings, number) for number in range(processes)]
    return await supervisor.Supervisor(command, count=processes, variables=variables).run()


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
        return tuple(sorted({*app.definition_queues, DEFAULT_QUEUE}))
    chosen = tuple(name.strip() for name in queues.split(",") if name.strip())
    if not chosen:
        raise InputError("--queues names no queue; give at least one")
    return chosen
