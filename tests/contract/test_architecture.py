"""The architecture page: every file, SQL function and statement that it names exists."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mainspring"
PAGE = (ROOT / "docs" / "architecture.md").read_text()
FILE = re.compile(r"`((?:[a-z_]+/)*[a-z_]+\.(?:py|sql))`")
FUNCTION = re.compile(r"`mainspring\.([a-z_]+)`")


def folders() -> list[Path]:
    """Where a name on the page may start."""
    return [PACKAGE, ROOT, *(path for path in PACKAGE.rglob("*") if path.is_dir())]


def test_every_file_that_is_named_exists():
    named = set(FILE.findall(PAGE))

    missing = {name for name in named if not any((path / name).is_file() for path in folders())}
    assert len(named) > 40
    assert missing == set()


def test_every_sql_function_that_is_named_exists(connection):
    named = set(FUNCTION.findall(PAGE)) - {"schedules"}

    query = "select proname from pg_proc where pronamespace = 'mainspring'::regnamespace"
    known = {name for (name,) in connection.execute(query)}
    assert named
    assert named <= known
