"""What looks like a secret, wherever it stands: credentials in URLs, assignments, known tokens.

Every pattern has a bounded number of steps from each place it can begin at, and no two of those
share what they look at, so the time grows with the text alone, whatever is in it.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_lowercase, ascii_uppercase

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Pattern:
    """Begins with one of the words, which are looked for first: that is much quicker than to try a
    pattern everywhere. Its last group is the secret."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]
    is_spelt_freely: bool


def pattern_spans(text: str) -> Iterator[Span]:
    """From where to where the secrets go; they may overlap."""
    small = text.lower() if text.isascii() else text.translate(_SMALL_LETTERS)
    for each in _PATTERNS:
        for word in each.words:
            found = places(small if each.is_spelt_freely else text, word)
            yield from _spans(text, each.pattern, found)


def places(text: str, part: str) -> Iterator[int]:
    """Where the part begins, wherever it does."""
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + 1)


def _spans(text: str, pattern: re.Pattern[str], starts: Iterator[int]) -> Iterator[Span]:
    end = 0
    for start in starts:
        found = pattern.match(text, start) if start >= end else None
        if found is not None:
            end = found.end()
            yield found.span(found.lastindex or 0)


def _spelt(pattern: str, *words: str) -> _Pattern:
    return _Pattern(words, re.compile(pattern), is_spelt_freely=False)


def _spelt_freely(pattern: str, *words: str) -> _Pattern:
    return _Pattern(words, re.compile(pattern, re.IGNORECASE), is_spelt_freely=True)


# What str.lower does to other letters may change the length.
_SMALL_LETTERS = str.maketrans(ascii_uppercase, ascii_lowercase)

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
