"""The REST API: on a port, or mounted in an app of your own.

api = FastAPI(lifespan=app.lifespan)
api.mount("/mainspring", app.api())
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI

from mainspring import __version__, telemetry
from mainspring.api.app import create_app
from mainspring.api.server import Server
from mainspring.db import connect, migrate
from mainspring.db.database import Database
from mainspring.domain.errors import SettingsError
from mainspring.domain.health import ReadVitals
from mainspring.domain.processes import Activity, ProcessKind
from mainspring.runtime.heartbeat import Action, Heartbeat, process_facts
from mainspring.services import people, tokens
from mainspring.settings.rules import is_loopback


async def prepare(database: Database) -> None:
    """Check the database and the role that requests run as."""
    settings = database.settings
    connecting = connect.connect(
        database.url, name="mainspring check", use_pooler=settings.use_pooler
    )
    async with await connecting as own:
        await migrate.check(own)
    await tokens.open_to_app(database)


def make_server(
    database: Database, *, version: str, is_exposed: bool = False, takes_any_port: bool = False
) -> Server:
    """The server from the settings, already listening. With `takes_any_port`, a default port that
    is in use is replaced by a free one."""
    settings = database.settings
    if not is_loopback(settings.host) and not is_exposed:
        raise SettingsError(
            f"setting host: {settings.host} can be reached from other machines, and tokens would "
            "cross the network unencrypted; put a TLS proxy in front of it and pass --expose"
        )
    app = create_app(database, version=version)
    try:
        return Server(app, host=settings.host, port=settings.port)
    except SettingsError:
        if not takes_any_port or "port" in settings.given:
            raise
        return Server(app, host=settings.host, port=0)


def make_api(database: Database, *, version: str) -> FastAPI:
    """The API to mount."""

    @asynccontextmanager
    async def lifespan(api: FastAPI) -> AsyncIterator[None]:
        async with visible(api):
            yield

    # It runs only where the API is not mounted; there the lifespan of the app does the same.
    return create_app(database, version=version, lifespan=lifespan)


@asynccontextmanager
async def visible(api: FastAPI) -> AsyncIterator[None]:
    """Keep the row of a server that another program serves."""
    state = api.state.server
    own = heartbeat(state.database, address=None, vitals=state.vitals)
    beating = asyncio.create_task(own.run(), name="mainspring server heartbeat")
    try:
        yield
    finally:
        own.stop()
        await beating
        await state.health.close()


def heartbeat(database: Database, *, address: str | None, vitals: ReadVitals) -> Heartbeat:
    """The row of a server; it uses a connection of the pool that requests use for tokens."""

    async def run_action(action: Action) -> Any:
        async with (await database.async_pool()).connection() as connection:
            return await action(connection)

    def activity() -> Activity:
        facts = {"address": address, "is_stopping": bool(vitals().hindrances)}
        return Activity({name: fact for name, fact in facts.items() if fact is not None})

    return Heartbeat(
        process_facts(ProcessKind.SERVER, __version__),
        run_action,
        activity,
        lease_seconds=database.settings.lease_seconds,
    )


async def first_login(database: Database) -> str | None:
    """The login code of the operator that the first start creates; None afterwards."""
    person = await people.ensure_operator(database)
    if person is None:
        return None
    telemetry.event("operator_created", person=person.name)
    return await tokens.open_login(database, person.name)
