"""The doctor in tests: what it finds, at which instant, and its advice followed."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import psycopg

from mainspring.db.database import Database
from mainspring.domain.checks.model import Finding, Fix
from mainspring.services import doctor
from mainspring.settings import load


class Doctor:
    """The doctor of one database; `later` moves the instant it asks about."""

    def __init__(self, database: Database) -> None:
        self.database = database

    async def findings(self, *only: str, later: timedelta = timedelta(0)) -> list[Finding]:
        now = datetime.now(UTC) + later if later else None
        report = await doctor.examine(self.database, self.database.settings, only=only, now=now)
        assert list(report.checked) == sorted(only or report.checked)
        return list(report.findings)

    async def found(self, *only: str, later: timedelta = timedelta(0)) -> list[tuple[str, str]]:
        """Ids and severities."""
        return [(each.id, str(each.severity)) for each in await self.findings(*only, later=later)]

    async def finding(self, check: str, *, later: timedelta = timedelta(0)) -> Finding:
        """The one finding of a check."""
        (found,) = await self.findings(check, later=later)
        return found

    async def fixes(self, *only: str) -> Sequence[Fix]:
        report = await doctor.fix(self.database, self.database.settings, only=only)
        return report.fixes


@asynccontextmanager
async def doctor_of(url: str, **settings: object) -> AsyncIterator[Doctor]:
    database = Database(load(database_url=url, **settings))
    try:
        yield Doctor(database)
    finally:
        await database.aclose()


def follow(connection: psycopg.Connection, advice: str) -> None:
    """Run the SQL of an advice, one statement after the other."""
    for statement in advice.partition("  --")[0].split(";"):
        if statement.strip():
            connection.execute(statement.encode())
