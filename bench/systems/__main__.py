"""Runs one command of one system: python -m bench.systems raw worker --dsn ..."""

import importlib
import sys

from bench.systems.driver import Driver, run


def main() -> None:
    module = importlib.import_module(f"bench.systems.{sys.argv.pop(1)}")
    driver: Driver = module.Driver()
    run(driver)


if __name__ == "__main__":
    main()
