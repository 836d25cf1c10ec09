"""Errors of the client of the REST API."""

from typing import Any

from mainspring.domain.errors import MainspringError


class ApiError(MainspringError):
    """The server refused a request: `status`, the code as `said`, `errors` where the request was
    wrong, and `job_id` of the job that is in the way."""

    code = "api_error"

    def __init__(
        self,
        status: int,
        said: str,
        detail: str,
        *,
        errors: Any = None,
        job_id: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.status, self.said, self.errors, self.job_id = status, said, errors, job_id


class ServerUnreachable(MainspringError):
    """There is no server at the address, or it went away."""

    code = "server_unreachable"
