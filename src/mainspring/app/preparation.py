"""What a process does before it works for an app."""

from typing import TYPE_CHECKING

from mainspring import telemetry
from mainspring.app.namespaces import App
from mainspring.db import connect, migrate

if TYPE_CHECKING:
    from mainspring.app.schedules import Schedules


async def prepare(app: App) -> None:
    """Check the database and store what the code declares."""
    url, use_pooler = app.database.url, app.settings.use_pooler
    async with await connect.connect(url, name="mainspring check", use_pooler=use_pooler) as own:
        await migrate.check(own)
    await app.aregister_definitions()
    # An app that declares no schedules has not imported the namespace, and need not.
    schedules: Schedules | None = vars(app).get("schedules")
    if schedules is not None and schedules.declared:
        await _store_schedules(app, schedules)


async def _store_schedules(app: App, schedules: "Schedules") -> None:
    from mainspring.services import schedules as services  # noqa: PLC0415 - few apps declare any

    stored = await services.declare(app.database, schedules.declared.values())
    counts = {word: len(stored[word]) for word in ("created", "changed", "kept")}
    new = telemetry.first([*stored["created"], *stored["changed"]])
    telemetry.event("schedules_synced", **counts, schedules=new or None)
