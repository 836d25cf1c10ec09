"""What the bodies of requests and answers are made of."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Generic, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
)

from mainspring.domain.filters import MOST_VALUES
from mainspring.domain.types import LONGEST_DELAY

T = TypeVar("T")

_LARGEST_ID = 2**63 - 1
_ID_PATTERN = r"^[1-9][0-9]{0,18}$"
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_LONGEST_SECONDS = int(LONGEST_DELAY.total_seconds())


class Body(BaseModel):
    """A request body; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True)

    def given(self) -> dict[str, Any]:
        """The fields that the request has, none by default."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class Answer(BaseModel):
    """A response body."""

    # Built on first use: a short command uses one or two of a hundred models.
    model_config = ConfigDict(extra="forbid", defer_build=True)


class Page(Answer, Generic[T]):
    """One page of a list. There are more pages while `next_cursor` is not null, even if `items` is
    short or empty."""

    items: list[T]
    next_cursor: str | None


def _read_instant(value: object) -> object:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise ValueError("must be a string such as 2026-01-31T12:00:00Z")  # noqa: TRY004 - pydantic's
    try:
        instant = datetime.fromisoformat(value)
    except ValueError:
        raise ValueError("must be a timestamp such as 2026-01-31T12:00:00Z") from None
    if instant.tzinfo is None:
        raise ValueError("needs a time zone, such as the Z in 2026-01-31T12:00:00Z")
    try:
        return instant.astimezone(UTC)
    except OverflowError:
        raise ValueError("is out of range") from None


def _read_id(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        number = value
    elif isinstance(value, str) and value.isascii() and value.isdigit():
        number = int(value[:20])
    else:
        raise ValueError("must be an id: a whole number, or a string that contains one")
    if not 1 <= number <= _LARGEST_ID:
        raise ValueError("must be an id: a whole number, 1 or more")
    return number


def _seconds(value: timedelta | None) -> float | None:
    return None if value is None else value.total_seconds()


def no_nul(value: str) -> str:
    if "\x00" in value:
        raise ValueError("must not contain a NUL byte")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("must be Unicode text, without lone surrogates") from None
    return value


def _read_duration(value: object) -> timedelta:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError("must be a number of seconds")  # noqa: TRY004 - pydantic's
    if not 0 <= value <= _LONGEST_SECONDS:
        raise ValueError("must be from 0 seconds to 100 years")
    return timedelta(seconds=value)


class _OrOne:
    """Takes one item for a list of one."""

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        several = handler(schema)
        return {"anyOf": [several["items"], several]}


def _as_list(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _one_line(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("must not contain line breaks or other control characters")
    return text


# Values of a filter, which are alternatives.
Filter = Annotated[list[T], Field(max_length=MOST_VALUES)]
OneOrMore = Annotated[
    list[T],
    BeforeValidator(_as_list),
    Field(min_length=1, max_length=MOST_VALUES),
    _OrOne(),
]
Text = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(no_nul)]
Name = Annotated[
    str, Field(min_length=1, max_length=200), AfterValidator(no_nul), AfterValidator(_one_line)
]
LongText = Annotated[str, Field(max_length=10_000), AfterValidator(no_nul)]
Object = dict[str, Any]

# As text, since JavaScript cannot hold 64 bits in a number; both are taken.
IdIn = Annotated[
    int,
    BeforeValidator(_read_id),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": _ID_PATTERN},
                {"type": "integer", "minimum": 1, "maximum": _LARGEST_ID},
            ]
        }
    ),
]
IdOut = Annotated[
    int,
    PlainSerializer(str, return_type=str),
    WithJsonSchema({"type": "string", "pattern": _ID_PATTERN}),
]
InstantIn = Annotated[
    datetime,
    BeforeValidator(_read_instant),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
# Durations are seconds.
DurationIn = Annotated[
    timedelta,
    BeforeValidator(_read_duration),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": _LONGEST_SECONDS}),
]
DurationOut = Annotated[
    timedelta,
    PlainSerializer(_seconds, return_type=float),
    WithJsonSchema({"type": "number"}),
]
