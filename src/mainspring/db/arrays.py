"""Whole columns as one parameter, encoded in one go.

psycopg's own list dumper looks at every element (up to 5 µs each); a batch of a thousand
jobs has thousands. These wrap a list that is known to be all integers or all text and write
PostgreSQL's binary array format directly (https://www.postgresql.org/docs/current/
protocol-overview.html: dimensions, has-nulls flag, element type, length, lower bound, then a
length and a value an element; length -1 is null).
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.adapt import Dumper
from psycopg.pq import Format

_INT8, _INT8_ARRAY = 20, 1016
_TEXT, _TEXT_ARRAY = 25, 1009
_EMPTY_INT8 = struct.pack("!iii", 0, 0, _INT8)
_EMPTY_TEXT = struct.pack("!iii", 0, 0, _TEXT)
_NULL = struct.pack("!i", -1)


@dataclass(frozen=True, slots=True)
class IntegerArray:
    """A bigint[] parameter without nulls."""

    values: Sequence[int]


@dataclass(frozen=True, slots=True)
class TextArray:
    """A text[] parameter of UTF-8 bytes; None is null."""

    values: Sequence[bytes | None]


def encode_integers(values: Sequence[int]) -> bytes:
    count = len(values)
    if not count:
        return _EMPTY_INT8
    cells = [8] * (2 * count)
    cells[1::2] = values
    return struct.pack(f"!iiiii{'iq' * count}", 1, 0, _INT8, count, 1, *cells)


def encode_texts(values: Sequence[bytes | None]) -> bytes:
    if not values:
        return _EMPTY_TEXT
    header = struct.pack("!iiiii", 1, int(None in values), _TEXT, len(values), 1)
    return header + b"".join(_text_cells(values))


def _text_cells(values: Iterable[bytes | None]) -> Iterable[bytes]:
    pack = struct.Struct("!i").pack
    for value in values:
        if value is None:
            yield _NULL
        else:
            yield pack(len(value))
            yield value


class _IntegerArrayDumper(Dumper):
    format = Format.BINARY
    oid = _INT8_ARRAY

    def dump(self, obj: Any) -> bytes:
        return encode_integers(obj.values)


class _TextArrayDumper(Dumper):
    format = Format.BINARY
    oid = _TEXT_ARRAY

    def dump(self, obj: Any) -> bytes:
        return encode_texts(obj.values)


psycopg.adapters.register_dumper(IntegerArray, _IntegerArrayDumper)
psycopg.adapters.register_dumper(TextArray, _TextArrayDumper)
