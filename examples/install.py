"""Lays the tables of an example, with some rows to work on: python -m examples.install brief"""

import sys
from pathlib import Path

import psycopg

from mainspring import Mainspring

HERE = Path(__file__).parent


def install(url: str, example: str) -> None:
    """Running it again changes nothing."""
    script = (HERE / example / "tables.sql").read_bytes()
    with psycopg.connect(url) as connection:
        connection.execute(script)


def main() -> None:
    known = sorted(path.parent.name for path in HERE.glob("*/tables.sql"))
    if len(sys.argv) != 2 or sys.argv[1] not in known:
        sys.exit(f"usage: python -m examples.install {'|'.join(known)}")
    with Mainspring() as app:
        install(app.database.url, sys.argv[1])
    has_app = (HERE / sys.argv[1] / "jobs.py").exists()
    print(f"done; now run: mainspring up{f' --app examples.{sys.argv[1]}.jobs:app' * has_app}")


if __name__ == "__main__":
    main()
