"""The REST API: on a port, or mounted in an app of your own.

api = FastAPI(lifespan=app.lifespan)
api.mount("/mainspring", app.api())
"""

from fastapi import FastAPI

from mainspring import telemetry
from mainspring.api.app import create_app
from mainspring.api.server import Server
from mainspring.db import connect, migrate
from mainspring.db.database import Database
from mainspring.domain.errors import SettingsError
from mainspring.services import people, tokens
from mainspring.settings.rules import is_loopback


async def prepare(database: Database) -> None:
    """Check the database, and the role that requests run as."""
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
    """The server by the settings; it listens already. Where nobody chose the port, and it is taken,
    `takes_any_port` takes another."""
    settings = database.settings
    if not is_loopback(settings.host) and not is_exposed:
        raise SettingsError(
            f"setting host: {settings.host} can be reached from other machines, and tokens would "
            "cross the network in the clear; put a proxy with TLS in front and say --expose"
        )
    app = create_app(database, version=version)
    try:
        return Server(app, host=settings.host, port=settings.port)
    except SettingsError:
        if not takes_any_port or "port" in settings.model_fields_set:
            raise
        return Server(app, host=settings.host, port=0)


def make_api(database: Database, *, version: str) -> FastAPI:
    """The API to mount."""
    return create_app(database, version=version)


async def first_login(database: Database) -> str | None:
    """The code of a login for the operator that the first start makes; None later on."""
    person = await people.ensure_operator(database)
    if person is None:
        return None
    telemetry.event("operator_created", person=person.name)
    return await tokens.open_login(database, person.name)
