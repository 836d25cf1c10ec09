"""Answers as bytes: what a model says, its tag, and where a list goes on."""

import base64
import binascii
import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

import orjson
from pydantic import BaseModel

from mainspring.api.models.base import Page
from mainspring.api.routing import Response
from mainspring.domain.errors import InvalidOption

Item = TypeVar("Item", bound=BaseModel)
Row = TypeVar("Row")

JSON = "application/json"
# One item is always sent, however large it is.
PAGE_BYTES = 4 * 1024 * 1024
_LOADED_AT_ONCE = 8
_STRANGE_CURSOR = "is invalid; pass next_cursor from the previous page"


def reply(
    model: BaseModel, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """The model itself; it is what it was checked to be when it was made."""
    content = model.__pydantic_serializer__.to_json(model)
    return Response(content, status, headers, JSON)


def tagged(model: BaseModel, facts: object, status: int = 200) -> Response:
    """The same with a tag of the facts that a change has to know."""
    return reply(model, status, {"ETag": tag_of(facts)})


def tag_of(facts: object) -> str:
    text = orjson.dumps(facts, default=str, option=orjson.OPT_SORT_KEYS)
    return f'"{hashlib.sha256(text).hexdigest()[:24]}"'


def page(
    rows: Sequence[Row], make: Callable[[Row], Item], *, following: object, model: Any
) -> Response:
    """A part of a list; `following` is what the next part comes after, None if there is none."""
    cursor = None if following is None else write_cursor(following)
    made: Page[Item] = model(items=[make(row) for row in rows], next_cursor=cursor)
    return reply(made)


async def large_page(
    load: Callable[[Any, int], Awaitable[Sequence[Row]]],
    make: Callable[[Row], Item],
    place_of: Callable[[Row], object],
    *,
    after: object,
    limit: int,
) -> Response:
    """The same of a list whose items may be large, within the byte budget of a page. `load` gives
    so many items after a place. A few are read at a time, so that hardly more is read than is
    sent, and requests of others are answered in between."""
    parts: list[bytes] = []
    left = PAGE_BYTES
    while len(parts) < limit:
        count = min(_LOADED_AT_ONCE, limit - len(parts))
        rows = await load(after, count)
        for row in rows:
            item = make(row)
            part = item.__pydantic_serializer__.to_json(item)
            left -= len(part)
            if parts and left < 0:
                return _written(parts, after)
            parts.append(part)
            after = place_of(row)
        if len(rows) < count:
            return _written(parts, None)
    return _written(parts, after)


def short_page(items: Sequence[Item], places: Sequence[object], *, following: object) -> Response:
    """The same within the byte budget of a page: what is over it is left to the next one, which
    comes after the place of the last item. Fields that were not set are left out."""
    parts: list[bytes] = []
    left = PAGE_BYTES
    for item, place_of_item in zip(items, places, strict=True):
        part = item.__pydantic_serializer__.to_json(item, exclude_unset=True)
        left -= len(part)
        if parts and left < 0:
            break
        parts.append(part)
        last = place_of_item
    if len(parts) < len(items):
        following = last
    return _written(parts, following)


def _written(parts: Sequence[bytes], following: object) -> Response:
    cursor = None if following is None else write_cursor(following)
    content = b'{"items":[%s],"next_cursor":%s}' % (b",".join(parts), orjson.dumps(cursor))
    return Response(content, 200, None, JSON)


def write_cursor(value: object) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(value)).decode().rstrip("=")


def read_cursor(text: str | None, kind: type[Row]) -> Row | None:
    """What a list goes on after."""
    if text is None:
        return None
    try:
        padded = text + "=" * (-len(text) % 4)
        value = orjson.loads(base64.b64decode(padded.encode("ascii"), b"-_", validate=True))
    except (ValueError, binascii.Error):
        value = None
    if type(value) is kind and _could_be_ours(value):
        return value
    raise invalid_cursor()


def invalid_cursor() -> InvalidOption:
    return InvalidOption("cursor", _STRANGE_CURSOR)


def place(name: str, tenant_id: str) -> list[str]:
    """Where a list by name goes on, in which tenants may have the same names."""
    return [name, tenant_id]


def read_place(text: str | None) -> tuple[str | None, str | None]:
    """The name and the tenant that a list by name goes on after."""
    match read_cursor(text, list):
        case None:
            return None, None
        case [str(name), str(tenant_id)] if "\x00" not in name + tenant_id:
            return name, tenant_id
        case _:
            raise invalid_cursor()


def numbered_place(name: str, number: int) -> list[str]:
    """Where a list by name goes on in which several have the same name, by the number of each."""
    return [name, str(number)]


def read_numbered_place(text: str | None, after: str | None) -> tuple[str | None, int | None]:
    """The name and the number that a list goes on after; `after` is a name alone."""
    name, number = read_place(text)
    if number is None:
        return after, None
    if not number.isascii() or not number.isdigit() or not _could_be_ours(int(number[:20])):
        raise invalid_cursor()
    return name, int(number)


def _could_be_ours(value: object) -> bool:
    if isinstance(value, int):
        return 0 < value < 2**63
    return "\x00" not in str(value)


def nothing() -> Response:
    return Response(status_code=204)
