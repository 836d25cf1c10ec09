"""What looks like a secret, wherever it stands: credentials in URLs, assignments, known tokens.

Every pattern has a bounded number of steps from each place it can begin at, and no two of those
share what they look at, so the time grows with the text alone, whatever is in it.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Begins with one of the words, which are looked for first: that is much quicker than to try a
    pattern everywhere. Its last group is the secret."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]


def pattern_spans(text: str) -> list[Span]:
    """From where to where the secrets go; they may overlap."""
    small = lowered(text)
    begin = _WORDS.search(small)
    spans: list[Span] = []
    ends: dict[tuple[int, str], int] = {}
    while begin is not None:
        start = begin.start()
        for number, word, pattern in _BY_BEGINNING[small[start : start + _SHORTEST_WORD]]:
            if small.startswith(word, start) and start >= ends.get((number, word), 0):
                found = pattern.match(text, start)
                if found is not None:
                    ends[number, word] = found.end()
                    spans.append(found.span(found.lastindex or 0))
        begin = _WORDS.search(small, start + 1)
    return spans


def lowered(text: str) -> str:
    """In small letters, each in its place and the same in every place."""
    small = text.lower()
    if text.isascii():
        return small
    if len(small) != len(text):  # One letter of Turkish becomes two.
        small = "".join(letter.lower()[:1] for letter in text)
    return small.replace("\u03c2", "\u03c3")  # The two small sigmas.


def places(text: str, part: str) -> Iterator[int]:
    """Where the part begins, wherever it does."""
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + 1)


def any_of(words: Iterable[str]) -> str:
    """A pattern that finds each of the words by one way through their letters, which is several
    times quicker than to try one after another."""
    tree: dict[str, Any] = {}
    for word in words:
        node = tree
        for letter in word:
            node = node.setdefault(letter, {})
        node[""] = {}
    return _branches(tree)


def _branches(node: dict[str, Any]) -> str:
    ways = [re.escape(letter) + _branches(rest) for letter, rest in node.items() if letter]
    if not ways or "" in node:
        return ""  # The shortest will do.
    return ways[0] if len(ways) == 1 else f"(?:{'|'.join(ways)})"


def _spelt(pattern: str, *words: str) -> _Pattern:
    return _Pattern(words, re.compile(pattern))


def _spelt_freely(pattern: str, *words: str) -> _Pattern:
    return _Pattern(words, re.compile(pattern, re.IGNORECASE))


# In JSON that stands in JSON a quote has backslashes before it.
_QUOTE = r"\\{0,3}[\"']"
_VALUE = (
    rf"\s{{0,3}}(?:(?P<quote>{_QUOTE})((?:(?<=\\)[\"']|(?!(?P=quote))[^\n]){{1,1000}})"
    r"|(\[redacted\]|[^\s\"'&,;<>\\]{1,1000}))"
)
_PLAIN_NAMES = ("password", "passwd", "passphrase", "secret", "api_key", "api-key", "apikey")
NAMES = (
    *(*_PLAIN_NAMES, "token", "pwd", "access_key", "access-key", "accesskey"),
    *("private_key", "private-key", "privatekey"),
)
_ANY_NAME = f"(?:{'|'.join(NAMES)})"
_ANY_PLAIN_NAME = f"(?:{'|'.join(_PLAIN_NAMES)})"
_SCHEMES = r"(?:(?:bearer|basic|token|digest|negotiate)\s{1,3})?"
_KEY = r"[A-Z0-9 ]{0,40}PRIVATE KEY-----"

_PATTERNS = (
    _spelt(r"://[^\s/:@]{0,200}:([^\s/]{1,500})@", "://"),
    _spelt_freely(
        rf"authorization(?:{_QUOTE})?\s{{0,3}}[:=]\s{{0,3}}(?:{_QUOTE})?{_SCHEMES}"
        r"([^\s\"'\\]{1,4000})",
        "authorization",
    ),
    _spelt_freely(r"\bbearer\s{1,3}([\w.~+/=-]{8,4000})", "bearer"),
    # The directory of a process is called PWD.
    _spelt_freely(
        rf"(?!pwd=/){_ANY_NAME}(?:{_QUOTE}\s{{0,3}}[:=]|\s{{0,3}}=(?!=)){_VALUE}", *NAMES
    ),
    # A token before a colon is a word of parsers, and the name of a file that was not found.
    _spelt_freely(rf"{_ANY_PLAIN_NAME}:{_VALUE}", *_PLAIN_NAMES),
    _spelt_freely(rf"--(?:[a-z]{{1,20}}-){{0,2}}(?:{_ANY_PLAIN_NAME}|token)(?=\s){_VALUE}", "--"),
    _spelt(r"\b((?:AKIA|ASIA)[0-9A-Z]{16})\b", "AKIA", "ASIA"),
    _spelt(r"\b(gh[opsur]_[A-Za-z0-9]{16,250})", "gho_", "ghp_", "ghs_", "ghu_", "ghr_"),
    _spelt(r"\b(github_pat_\w{20,250})", "github_pat_"),
    _spelt(r"\b(glpat-[\w-]{16,250})", "glpat-"),
    _spelt(r"(?<![\w-])(sk-[\w-]{16,250})", "sk-"),
    _spelt(
        r"(?<![\w-])([rs]k_(?:live|test)_\w{8,250})",
        *("rk_live_", "rk_test_", "sk_live_", "sk_test_"),
    ),
    _spelt(r"(?<![\w-])(msk_[\w-]{40,100})", "msk_"),
    _spelt(r"\b(xox[a-z]-[A-Za-z0-9-]{8,250})", "xox"),
    _spelt(r"\b(AIza[\w-]{35})", "AIza"),
    _spelt(r"(?<![\w-])(eyJ[\w-]{5,8000}\.[\w-]{1,8000}(?:\.[\w-]{0,8000})?)", "eyJ"),
    _spelt(rf"(-----BEGIN {_KEY}(?s:.*?)(?:-----END {_KEY}|\Z))", "-----BEGIN "),
)

# All are looked for at once, in small letters; the patterns themselves say how they are spelt.
_WORDS = re.compile(any_of(word.lower() for each in _PATTERNS for word in each.words))
_SHORTEST_WORD = min(len(word) for each in _PATTERNS for word in each.words)


def _by_beginning() -> dict[str, list[tuple[int, str, re.Pattern[str]]]]:
    known: dict[str, list[tuple[int, str, re.Pattern[str]]]] = defaultdict(list)
    for number, each in enumerate(_PATTERNS):
        for word in each.words:
            small = word.lower()
            known[small[:_SHORTEST_WORD]].append((number, small, each.pattern))
    return dict(known)


_BY_BEGINNING = _by_beginning()
