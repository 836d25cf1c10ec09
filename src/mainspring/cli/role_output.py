"""What the long-running roles print when they start and stop, for people; programs read the log."""

import os
import shlex
import shutil
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from mainspring import __version__
from mainspring.app import Mainspring
from mainspring.db.connect import display_url
from mainspring.runtime.worker.worker import Worker


class Announcer:
    """Says what a process does and when it stops; says nothing unless `is_for_people`."""

    def __init__(self, *, is_for_people: bool = True) -> None:
        self._is_for_people = is_for_people
        self._is_named = False
        self._roles: tuple[Mainspring, Sequence[str]] | None = None

    def name_program(self) -> None:
        if self._is_for_people and not self._is_named:
            self._is_named = True
            print_line(f"Mainspring {__version__}", is_bold=True)

    def starting(self, app: Mainspring, *lines: str) -> None:
        """Keep what the program does until `started`: one that has no database says only that."""
        self._roles = app, lines

    def show_roles(self) -> None:
        """Name the program and its database, then what it does there."""
        if self._roles is None or not self._is_for_people:
            return
        self.name_program()
        (app, lines), self._roles = self._roles, None
        for line in (*_database(app), *lines):
            print_line(line)

    def started(self) -> None:
        """The database has answered."""
        self.show_roles()
        if self._is_for_people:
            print_line("Ctrl-C stops it.")

    def stopping(self, worker: Worker | None, drain_seconds: float) -> None:
        if self._is_for_people:
            print_line(f"{_below()}Stopping{_drain(worker, drain_seconds)}.")

    def hurrying(self) -> None:
        if self._is_for_people:
            print_line(f"{_below()}Stopping at once; running jobs are handed back.")


def print_line(line: str, *, is_bold: bool = False) -> None:
    """Without Rich, which takes longer to import than a worker has until its first job."""
    is_shown = is_bold and sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    try:
        print(f"\x1b[1m{line}\x1b[0m" if is_shown else line, flush=True)
    except BrokenPipeError:
        # Nobody reads the output any more, but the work goes on. Python would complain at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _below() -> str:
    """A terminal shows ^C at the beginning of the line."""
    return "\n" if sys.stdout.isatty() else ""


def _drain(worker: Worker | None, seconds: float) -> str:
    if worker is None or not worker.running:
        return ""
    jobs = "1 running job" if worker.running == 1 else f"{worker.running} running jobs"
    return f": waiting up to {seconds:g} s for {jobs}; press Ctrl-C again to stop at once"


def _database(app: Mainspring) -> tuple[str, ...]:
    url = display_url(app.database.url)
    if app.database.is_embedded:
        place = f"  database  embedded PostgreSQL in {app.database.data_dir}"
        return place, f"            {url}"
    return (f"  database  {url}",)


def worker_line(app: Mainspring, app_reference: str | None, queues: Collection[str]) -> str:
    named = ", ".join(queues)
    has_commands = bool(app.settings.command_directories)
    if not app.handlers:
        kinds = "SQL functions and commands" if has_commands else "SQL functions"
        return f"  worker    {kinds} (queue {named}); your own jobs: --app module:name"
    known = ", ".join(sorted(app.handlers)) + (" and commands" if has_commands else "")
    return f"  worker    {app_reference}: {known} (queues {named})"


def scheduler_line(app: Mainspring) -> str:
    names = sorted(name for _, name in app.schedules.declared)
    declared = f"; the app declares {', '.join(names)}" if names else ""
    return f"  scheduler fires the schedules of this database{declared}"


def print_examples(app: Mainspring, where: str) -> None:
    """Commands to try, with the options by which they come here."""
    if not app.handlers:
        return
    first = sorted(app.handlers)[0]
    call = _program()
    payload = app.example_payload(first)
    every = f"--definition {first} --payload '{payload}' --cron '* * * * *'"
    print_line("  try       in another terminal:")
    for words in (
        f"enqueue {first} '{payload}'",
        "jobs list",
        f"schedules create every-minute {every}",
        "schedules list",
    ):
        print_line(f"            {call} {words}{where}")


def _program() -> str:
    """How to call this program from here: in a fresh clone it is not on the path."""
    if shutil.which("mainspring"):
        return "mainspring"
    program = Path(sys.argv[0])
    if program.name != "mainspring":
        return f"{sys.executable} -m mainspring"
    return os.path.relpath(program)


def where(app: Mainspring) -> str:
    """The options by which another command finds the same database."""
    if app.settings.database_url is not None:
        return "" if "MAINSPRING_DATABASE_URL" in os.environ else " --database-url ..."
    if app.settings.data_dir is None or "MAINSPRING_DATA_DIR" in os.environ:
        return ""
    return f" --data-dir {shlex.quote(str(app.settings.data_dir))}"
