"""Programs of other releases, as far as an upgrade can tell: other migrations, other functions."""

from collections.abc import Sequence

import pytest

from mainspring.db import migrate
from mainspring.db.migrate import Migration

MIGRATIONS = migrate.migrations()
FUNCTIONS = migrate.functions()
VERSION, DIGEST = migrate.recorded_functions()
NEXT = MIGRATIONS[-1].number + 1


def later_migration(sql: str, *, works_with: int = MIGRATIONS[-1].number) -> Migration:
    """The one after the newest."""
    return Migration(NEXT, "later", f"-- works with: {works_with:04}\n{sql}")


def become(
    patch: pytest.MonkeyPatch,
    *,
    migration: Migration | None = None,
    functions: Sequence[str] = FUNCTIONS,
    version: int = VERSION,
) -> None:
    """Let this process migrate as another program would."""
    known = [*MIGRATIONS, *([migration] if migration else [])]
    patch.setattr(migrate, "migrations", lambda: known)
    patch.setattr(migrate, "functions", lambda: list(functions))
    patch.setattr(migrate, "recorded_functions", lambda: (version, DIGEST))
