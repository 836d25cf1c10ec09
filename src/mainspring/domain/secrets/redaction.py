"""Secrets taken out of texts: those that are known, and those that look like one.

    text ─▶ spans of known secrets ┐
         ─▶ spans of patterns ─────┴▶ merged ─▶ each becomes [redacted]

How a known secret may look is in `forms.py`. A text that is still growing may end in the middle of
a secret, so what could be its beginning is held back; a text whose start was cut off is looked at
together with what stood before the cut.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from mainspring.domain.secrets.forms import Forms, pieces
from mainspring.domain.secrets.paths import REDACTED, SHORTEST_SECRET
from mainspring.domain.secrets.patterns import Span, lowered, pattern_spans

# With more than this the search would take longer than the job; then nothing is shown at all.
_MOST_TEXTS = 200
_DEEPEST = 200
# What stands before a cut, to find what began there: a piece in its longest form, or a private key.
MARGIN = 8 * 1024


class Redactor:
    """Knows the secrets of one job."""

    __slots__ = ("_forms", "_hides_all", "_texts")

    def __init__(self, secrets: Iterable[str]) -> None:
        self._texts = frozenset(piece for secret in secrets for piece in pieces(secret))
        self._hides_all = len(self._texts) > _MOST_TEXTS
        self._forms: Forms | None = None

    def __bool__(self) -> bool:
        """Whether there is anything to hide."""
        return bool(self._texts)

    def text(self, text: str) -> str:
        """The text as people may see it."""
        return REDACTED if self._hides_all and text else _hidden(text, self._spans(text))

    def line(self, line: str) -> str:
        """A line that may not be the job's own: it is hidden only if it holds a secret."""
        if not self._hides_all:
            return self.text(line)
        small = lowered(line)
        return f"{REDACTED}\n" if any(lowered(text) in small for text in self._texts) else line

    def value(self, value: Any, depth: int = 0) -> Any:
        """A JSON value as people may see it, names included."""
        if depth > _DEEPEST:
            return REDACTED
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                self.text(name) if isinstance(name, str) else name: self.value(part, depth + 1)
                for name, part in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(part, depth + 1) for part in value]
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if is_number and (self._hides_all or str(value) in self._texts):
            return REDACTED
        return value

    def end_of(self, text: str) -> int:
        """Where the beginning of a secret may begin that the text breaks off in; else its end."""
        return self._known().end_of(text) if self._texts else len(text)

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
        return self._known().spans(text) if self._texts and not self._hides_all else []

    def _known(self) -> Forms:
        """Made when the first text is looked at: most jobs say nothing."""
        if self._forms is None:
            self._forms = Forms(self._texts)
        return self._forms


def redact_patterns(text: str) -> str:
    """What may be shown of a text whose secrets nobody knows."""
    return _hidden(text, pattern_spans(text))


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
