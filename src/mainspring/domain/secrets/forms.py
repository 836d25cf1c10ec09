"""How a known secret may look in a text, and where it does.

A secret is looked for in small letters: as it is, and as it looks in a URL, in JSON, in a Python
repr, in hexadecimal digits and in base64, where it may be a part of what was encoded. What is
encoded may be broken into lines, so for these forms the text is also read without line breaks.
"""

import base64
import json
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

from mainspring.domain.secrets.paths import SHORTEST_SECRET
from mainspring.domain.secrets.patterns import Span, lowered, places

_LONGEST_PIECE = 512
_SHORTEST_LINE = 8
# Shorter pieces of base64 stand in ordinary words too.
_SHORTEST_CODE = 8
# From so many on it is quicker to look at every part of a text once than for one after another.
_MANY_FORMS = 100
# Also as they look in JSON and in a repr; what follows may be indented.
_BREAKS = re.compile(r"(?:\r?\n|\\r\\n|\\n)[ \t]*")
_FORM = SHORTEST_SECRET


class Forms:
    """All forms of the secrets of one job. Each has at least four characters."""

    __slots__ = ("_by_beginning", "_codes", "_plain")

    def __init__(self, texts: Iterable[str]) -> None:
        texts = list(texts)
        self._codes = frozenset(code for text in texts for code in _codes(text))
        self._plain = frozenset(form for text in texts for form in _plain(text)) | self._codes
        self._by_beginning: dict[str, list[str]] | None = None

    def __bool__(self) -> bool:
        return bool(self._plain)

    def spans(self, text: str) -> list[Span]:
        """From where to where, also of those that overlap each other."""
        found = self._found(lowered(text))
        if self._codes and _BREAKS.search(text):
            joined = _Joined(text)
            ends = (
                (joined.place(first), joined.place(last - 1) + 1)
                for first, last in self._found(joined.text, only=self._codes)
            )
            found += ends
        return found

    def end_of(self, text: str) -> int:
        """Where the beginning of a secret may begin that the text breaks off in; else its end."""
        begins = _beginning(lowered(text), self._plain)
        if self._codes and _BREAKS.search(text):
            joined = _Joined(text)
            begin = _beginning(joined.text, self._codes)
            if begin < len(joined.text):
                begins = min(begins, joined.place(begin))
        return begins

    def _found(self, text: str, only: frozenset[str] | None = None) -> list[Span]:
        forms = self._plain if only is None else only
        if len(forms) < _MANY_FORMS:
            return [(at, at + len(form)) for form in forms for at in places(text, form)]
        if self._by_beginning is None:
            self._by_beginning = _grouped(self._plain)
        known = self._by_beginning.keys() & {
            text[at : at + _FORM] for at in range(len(text) - _FORM + 1)
        }
        return [
            (at, at + len(form))
            for beginning in known
            for form in self._by_beginning[beginning]
            if form in forms
            for at in places(text, form)
        ]


class _Joined:
    """A text in small letters without line breaks, and where its characters stand in the text."""

    def __init__(self, text: str) -> None:
        self._starts, self._left_out, parts = [0], [0], []
        start = kept = 0
        for found in _BREAKS.finditer(text):
            parts.append(text[start : found.start()])
            kept += found.start() - start
            start = found.end()
            self._starts.append(kept)
            self._left_out.append(start - kept)
        self.text = lowered("".join((*parts, text[start:])))

    def place(self, index: int) -> int:
        return index + self._left_out[bisect_right(self._starts, index) - 1]


def _beginning(text: str, forms: Iterable[str]) -> int:
    begins = len(text)
    for form in forms:
        start = max(len(text) - len(form) + 1, 0)
        while (start := text.find(form[0], start, begins)) >= 0:
            if form.startswith(text[start:]):
                begins = start
            start += 1
    return begins


def _grouped(forms: Iterable[str]) -> dict[str, list[str]]:
    grouped: dict[str, list[str]] = defaultdict(list)
    for form in forms:
        grouped[form[:_FORM]].append(form)
    return dict(grouped)


def pieces(secret: str) -> Iterator[str]:
    """A text of many lines may be printed line by line, and a long one is searched in parts."""
    lines = [line.strip() for line in secret.splitlines()] if "\n" in secret else []
    for text in (secret, *(line for line in lines if len(line) >= _SHORTEST_LINE)):
        for start in range(0, len(text) - _LONGEST_PIECE, _LONGEST_PIECE):
            yield text[start : start + _LONGEST_PIECE]
        if len(text) >= SHORTEST_SECRET:
            yield text[-_LONGEST_PIECE:]


def _plain(text: str) -> Iterator[str]:
    storable = text.encode("utf-8", "replace").decode()
    yield from (lowered(text), lowered(storable))
    for percent in (quote(storable, safe=""), quote(storable), quote_plus(storable)):
        yield percent.lower()
    for as_ascii in (True, False):
        once = lowered(json.dumps(storable, ensure_ascii=as_ascii)[1:-1])
        yield from (once, json.dumps(once, ensure_ascii=False)[1:-1], once.replace("/", "\\/"))
    for shown in (repr(storable)[1:-1], repr(storable.encode())[2:-1]):
        small = lowered(shown)
        yield from (small, small.replace("'", "\\'"), repr(small)[1:-1])


def _codes(text: str) -> Iterator[str]:
    data = text.encode("utf-8", "replace")
    yield data.hex()
    yield from _base64(data)


def _base64(data: bytes) -> Iterator[str]:
    """Three bytes are four characters, so there are three ways for what stands before; the
    characters shared with a neighbour are left out."""
    for before in range(3):
        padded = b"\0" * before + data
        code = base64.b64encode(padded).decode().lower()
        first = 0 if before == 0 else before + 1
        whole = len(padded) // 3 * 4
        for end in {whole, len(code.rstrip("="))} if before == 0 else {whole}:
            inner = code[first:end]
            if len(inner) >= _SHORTEST_CODE:
                yield inner
                yield inner.replace("+", "-").replace("/", "_")
