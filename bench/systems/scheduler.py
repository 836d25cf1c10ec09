"""What a system with schedules offers to be measured by, and the commands for it.

Each command is a process of its own: `python -m bench.systems apscheduler_ fire_due`.
"""

import argparse
import json
import sys
from typing import Final

COMMANDS: Final = ("fire_due", "every_second", "tick")


class Scheduler:
    """A system leaves out what it is not measured by."""

    def fire_due(self, dsn: str, count: int) -> None:
        """Schedule until killed, with so many schedules that are due when it begins.

        Everything declared and stored comes first; then it reports that it begins.
        """
        raise NotImplementedError

    def every_second(self, dsn: str) -> None:
        """Schedule until killed, with one schedule that is due every second."""
        raise NotImplementedError

    def tick(self, dsn: str) -> float:
        """Milliseconds of a look at the database that finds nothing due."""
        raise NotImplementedError


def run(scheduler: Scheduler) -> None:
    """Do what the command line says and print its result, if there is one, as JSON."""
    arguments = _parser().parse_args()
    match arguments.command:
        case "fire_due":
            scheduler.fire_due(arguments.dsn, arguments.count)
        case "every_second":
            scheduler.every_second(arguments.dsn)
        case _:
            json.dump(scheduler.tick(arguments.dsn), sys.stdout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=COMMANDS)
    parser.add_argument("--dsn", required=True)
    parser.add_argument("--count", type=int, default=0)
    return parser
