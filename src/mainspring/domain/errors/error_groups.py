"""Errors about groups of errors; the tree is drawn in `errors`."""

from mainspring.domain.errors import NotFoundError


class ErrorGroupNotFound(NotFoundError):
    """No attempt of the tenant has failed with this error key in the last 90 days."""

    code = "error_group_not_found"

    def __init__(self, key: str) -> None:
        super().__init__(f"there is no error {key!r}; list errors with `mainspring errors list`")
        self.key = key
