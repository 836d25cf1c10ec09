"""Errors as the command line reports them: about options, not parts of a request."""

from collections.abc import Iterable, Mapping
from http import HTTPStatus
from inspect import Parameter
from typing import Any

from rich.text import Text
from typer.models import OptionInfo

from mainspring.cli import output
from mainspring.domain.errors import (
    ConflictError,
    JobUnsuccessful,
    MainspringError,
    NotFoundError,
    ResultTimeout,
)
from mainspring.domain.errors.client import ApiError

_NOT_DONE = (ConflictError, JobUnsuccessful, NotFoundError, ResultTimeout)
_NOT_DONE_STATUS = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.PRECONDITION_FAILED)


def in_options(error: ApiError, parameters: Iterable[Parameter]) -> ApiError:
    """The same, about the option that the wrong part of the request came from."""
    if error.said != "invalid_request" or not error.errors:
        return error
    fault: Mapping[str, Any] = error.errors[0]
    _, _, path = str(fault["path"]).partition(".")
    field, _, inside = path.partition(".")
    named = {each.name: _option(each) for each in parameters}
    where = named.get(field) or field or "the request"
    said = f"{where}{f' ({inside})' if inside else ''} {fault['problem']}"
    return ApiError(error.status, error.said, said, errors=error.errors)


def _option(parameter: Parameter) -> str | None:
    """How a parameter is spelt on the command line, if it is an option."""
    for info in getattr(parameter.annotation, "__metadata__", ()):
        if isinstance(info, OptionInfo):
            # Inside Annotated the first name comes as the default.
            spelt = (info.default, *(info.param_decls or ()))
            names = [str(name) for name in spelt if str(name).startswith("--")]
            return (names or [f"--{parameter.name.replace('_', '-')}"])[0].partition("/")[0]
    return None


def print_error(error: MainspringError) -> None:
    output.errors.print(Text.assemble(("error: ", "red"), str(error)))


def exit_code(error: MainspringError) -> int:
    """1 where the command was sound and could not be carried out, 2 where it was wrong."""
    if isinstance(error, ApiError):
        return 1 if error.status in _NOT_DONE_STATUS else 2
    return 1 if isinstance(error, _NOT_DONE) else 2
