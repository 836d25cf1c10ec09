"""What runs beside the long-running roles so that others see how they are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mainspring.app import Mainspring
from mainspring.domain.errors import SettingsError
from mainspring.domain.health import ReadVitals
from mainspring.runtime.roles import Role
from mainspring.settings import Settings

if TYPE_CHECKING:
    from mainspring.api.server import Server

_LAST_PORT = 65_535


def companions(app: Mainspring, roles: Sequence[ReadVitals], server: "Server | None") -> list[Role]:
    """The row of the server, which answers for all roles, and the listener if one is wanted."""
    found: list[Role] = []
    if server is not None:
        from mainspring.app.server import heartbeat

        server.watch(*roles)
        found.append(heartbeat(app.database, address=server.address, vitals=server.vitals))
        roles = (*roles, server.vitals)
    if app.settings.health_port or app.settings.health_file:
        from mainspring.runtime.health_listener import HealthListener

        found.append(HealthListener(app.database.url, app.settings, roles))
    return found


def health_variables(settings: Settings, number: int) -> dict[str, str]:
    """The settings by which each of several processes has a port and a file of its own."""
    found = {}
    if settings.health_port:
        port = settings.health_port + number
        if port > _LAST_PORT:
            raise SettingsError(
                f"setting health_port: process {number + 1} would listen on {port}; choose a lower "
                "port, since each process takes the next one"
            )
        found["MAINSPRING_HEALTH_PORT"] = str(port)
    if settings.health_file is not None and number:
        found["MAINSPRING_HEALTH_FILE"] = f"{settings.health_file}.{number}"
    return found
