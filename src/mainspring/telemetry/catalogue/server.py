"""Events about the server."""

from collections.abc import Mapping
from types import MappingProxyType

from mainspring.telemetry.events import ERROR, INFO, WARNING, Event, event

TITLE = "Server"
EVENTS: Mapping[str, Event] = MappingProxyType(
    {
        "operator_created": event(
            INFO, "person", "The first start created the operator and printed a login link."
        ),
        "server_stopped": event(
            INFO, "", "The server has sent streams the last state and closed HTTP."
        ),
        "request_failed": event(
            ERROR,
            "method path error",
            "A request failed for an unexpected reason; please report it.",
        ),
        "row_security_refused": event(
            ERROR,
            "method path error",
            "The database refused what a request was allowed to do; please report it.",
        ),
        "connection_refused": event(WARNING, "address", "A client has too many connections open."),
        "streams_paused": event(WARNING, "error", "Streams wait for the database."),
        "login_refused": event(
            WARNING, "person", "The provider vouched for someone whom Mainspring does not know."
        ),
        "login_failed": event(WARNING, "error", "A login through the provider failed."),
        "console_not_renewed": event(
            WARNING, "error", "The token of `mainspring up` for commands was not renewed yet."
        ),
        "console_revoked": event(
            INFO, "note", "Someone revoked the token of `mainspring up` for commands."
        ),
    }
)
