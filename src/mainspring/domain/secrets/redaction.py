"""Secrets taken out of texts: those that are known, and those that look like one.

    text ─▶ spans of known secrets ┐
         ─▶ spans of patterns ─────┴▶ merged ─▶ each becomes [redacted]

A known secret is found as it is and as it looks in a URL, in JSON, in a Python repr and in base64,
where it may be a part of what was encoded. A text that is still growing may end in the middle of a
secret, so what could be its beginning is held back; a text whose start was cut off is looked at
together with what stood before the cut.
"""

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

from mainspring.domain.secrets.paths import REDACTED, SHORTEST_SECRET
from mainspring.domain.secrets.patterns import Span, pattern_spans, places

# With more than this the search would take longer than the job; then nothing is shown at all.
_MOST_TEXTS = 200
_LONGEST_PIECE = 512
_SHORTEST_LINE = 8
_DEEPEST = 200
# Shorter pieces of base64 stand in ordinary words too.
_SHORTEST_CODE = 8
# What stands before a cut, to find what began there: a piece in its longest form, or a private key.
MARGIN = 8 * 1024


class Redactor:
    """Knows the secrets of one job."""

    __slots__ = ("_forms", "_hides_all", "_texts")

    def __init__(self, secrets: Iterable[str]) -> None:
        texts = {piece for secret in secrets for piece in _pieces(secret)}
        self._hides_all = len(texts) > _MOST_TEXTS
        self._texts = frozenset(texts)
        forms = {form for text in texts for form in _forms(text)} if not self._hides_all else set()
        self._forms = tuple(forms)

    def __bool__(self) -> bool:
        """Whether there is anything to hide."""
        return self._hides_all or bool(self._forms)

    def text(self, text: str) -> str:
        """The text as people may see it."""
        return REDACTED if self._hides_all and text else _hidden(text, self._spans(text))

    def line(self, line: str) -> str:
        """A line that may not be the job's own: it is hidden only if it holds a secret."""
        if not self._hides_all:
            return self.text(line)
        return f"{REDACTED}\n" if any(text in line for text in self._texts) else line

    def value(self, value: Any, depth: int = 0) -> Any:
        """A JSON value as people may see it, names included."""
        if depth > _DEEPEST:
            return REDACTED
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {self.text(name): self.value(part, depth + 1) for name, part in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(part, depth + 1) for part in value]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and (self._hides_all or str(value) in self._texts):
            return REDACTED
        return value

    def end_of(self, text: str) -> int:
        """Where the beginning of a secret may begin that the text breaks off in; else its end."""
        begins = len(text)
        for form in self._forms:
            start = max(len(text) - len(form) + 1, 0)
            while (start := text.find(form[0], start, begins)) >= 0:
                if form.startswith(text[start:]):
                    begins = start
                start += 1
        return begins

    def tail(self, text: str, start: int = 0, *, is_whole: bool = True) -> str:
        """What may be shown from `start` on of a text that other text may have stood before; one
        that is not whole may go on."""
        if self._hides_all:
            return REDACTED if text else text
        spans, end = self._spans(text), len(text)
        begins = self.end_of(text)
        if not is_whole:
            end = begins
        elif end - begins >= SHORTEST_SECRET:
            spans.append((begins, end))
        return _hidden(text, [*spans, *pattern_spans(text)], start, end=end)

    def _spans(self, text: str) -> list[Span]:
        """Also those of secrets that overlap each other. To look for one form after another is
        much quicker than a pattern of them all."""
        return [(start, start + len(form)) for form in self._forms for start in places(text, form)]


def redact_patterns(text: str) -> str:
    """What may be shown of a text whose secrets nobody knows."""
    return _hidden(text, list(pattern_spans(text)))


def _hidden(text: str, spans: list[Span], start: int = 0, *, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not spans:
        return text[start:end]
    parts: list[str] = []
    for first, last in _merged(spans):
        if last <= start or first >= end:
            continue
        parts += (text[start:first], REDACTED)
        start = last
    parts.append(text[start:end])
    return "".join(parts)


def _merged(spans: list[Span]) -> Iterator[Span]:
    spans.sort()
    first, last = spans[0]
    for begin, end in spans[1:]:
        if begin > last:
            yield first, last
            first, last = begin, end
        last = max(last, end)
    yield first, last


# For what has no secrets but those that look like one.
NO_SECRETS = Redactor(())


# Forms of a known secret


def _pieces(secret: str) -> Iterator[str]:
    """A text of many lines may be printed line by line, and a long one is searched in parts."""
    lines = [line.strip() for line in secret.splitlines()] if "\n" in secret else []
    for text in (secret, *(line for line in lines if len(line) >= _SHORTEST_LINE)):
        for start in range(0, len(text) - _LONGEST_PIECE, _LONGEST_PIECE):
            yield text[start : start + _LONGEST_PIECE]
        if len(text) >= SHORTEST_SECRET:
            yield text[-_LONGEST_PIECE:]


def _forms(text: str) -> Iterator[str]:
    storable = text.encode("utf-8", "replace").decode()
    yield from (text, storable)
    for percent in (quote(storable, safe=""), quote(storable), quote_plus(storable)):
        yield from (percent, _lower_codes(percent))
    for as_ascii in (True, False):
        once = json.dumps(storable, ensure_ascii=as_ascii)[1:-1]
        yield from (once, json.dumps(once)[1:-1], once.replace("/", "\\/"))
    for shown in (repr(storable)[1:-1], repr(storable.encode())[2:-1]):
        yield from (shown, shown.replace("'", "\\'"), repr(shown)[1:-1])
    yield from _codes(storable.encode())


def _lower_codes(percent: str) -> str:
    return re.sub(r"%[0-9A-F]{2}", lambda code: code[0].lower(), percent)


def _codes(data: bytes) -> Iterator[str]:
    """In base64 three bytes are four characters, so there are three ways for what stands before;
    the characters shared with a neighbour are left out."""
    for before in range(3):
        padded = b"\0" * before + data
        code = base64.b64encode(padded).decode()
        first = 0 if before == 0 else before + 1
        whole = len(padded) // 3 * 4
        for end in {whole, len(code.rstrip("="))} if before == 0 else {whole}:
            inner = code[first:end]
            if len(inner) >= _SHORTEST_CODE:
                yield inner
                yield inner.replace("+", "-").replace("/", "_")
