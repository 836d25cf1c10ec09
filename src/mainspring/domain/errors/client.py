"""Errors of the client of the REST API."""

from typing import Any

from mainspring.domain.errors import MainspringError


class ApiError(MainspringError):
    """The server refused a request: `status`, the code as `said`, and `errors` where the request
    was wrong."""

    code = "api_error"

    def __init__(self, status: int, said: str, detail: str, *, errors: Any = None) -> None:
        super().__init__(detail)
        self.status, self.said, self.errors = status, said, errors


class ServerUnreachable(MainspringError):
    """There is no server at the address, or it went away."""

    code = "server_unreachable"
