"""What the migrations make, as one file to read in reviews: `python -m mainspring.db.dump`."""

import asyncio
import re
import subprocess
import tempfile
from pathlib import Path

from mainspring.db import embedded, migrate
from mainspring.db.embedded.programs import installation
from mainspring.domain.errors.database import DatabaseError

FILE = Path(__file__).parents[1] / "sql" / "schema.sql"
VERSION_FILE = FILE.with_name("functions.version")

_TITLE = "-- What the migrations make; written by `make schema`, never by hand.\n"
_VERSION_TITLE = (
    "# Version and digest of functions, views and triggers; written by `make schema`, never by\n"
    "# hand. After a merge conflict keep both lines and run it.\n"
)
_DAY_PARTITIONS = "mainspring.*_" + "[0-9]" * 8
_HEADING = re.compile(r"^--\n-- (?:Name: |PostgreSQL database dump).*\n--\n", re.MULTILINE)
# The version, a random key against injected commands, and how the session is to read the file.
_INCIDENTAL = re.compile(
    r"^(?:-- Dumped .*|\\(?:un)?restrict .*|SET .*;|SELECT pg_catalog\.set_config\(.*)\n",
    re.MULTILINE,
)
_BLANK_LINES = re.compile(r"\n{3,}")


def dump(url: str) -> str:
    """The schema of a migrated database, the same text however often and wherever it is made."""
    command = (
        installation() / "bin" / "pg_dump",
        "--schema-only",
        "--no-owner",
        "--schema=mainspring",
        f"--exclude-table={_DAY_PARTITIONS}",
        url,
    )
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise DatabaseError(f"pg_dump failed: {done.stderr.strip()}")
    return _normal(done.stdout)


def main() -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        embedded.running(Path(folder)) as server,
    ):
        asyncio.run(migrate.migrate(server.url))
        FILE.write_text(dump(server.url), encoding="utf-8")
    VERSION_FILE.write_text(version_text(), encoding="utf-8")


def version_text() -> str:
    """What functions.version must say: the next number if the functions are not those it names."""
    version, digest = migrate.recorded_functions()
    if digest != (own := migrate.own_functions().digest):
        version, digest = version + 1, own
    return f"{_VERSION_TITLE}{version} {digest}\n"


def _normal(text: str) -> str:
    bare = _INCIDENTAL.sub("", _HEADING.sub("", text))
    return _TITLE + "\n" + _BLANK_LINES.sub("\n\n", bare).strip() + "\n"


if __name__ == "__main__":
    main()
