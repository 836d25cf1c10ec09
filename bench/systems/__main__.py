"""Runs one command of one system: python -m bench.systems raw worker --dsn ..."""

import importlib
import sys

from bench.systems import driver, scheduler


def main() -> None:
    module = importlib.import_module(f"bench.systems.{sys.argv.pop(1)}")
    if sys.argv[1] in scheduler.COMMANDS:
        scheduler.run(module.Scheduler())
    else:
        driver.run(module.Driver())


if __name__ == "__main__":
    main()
