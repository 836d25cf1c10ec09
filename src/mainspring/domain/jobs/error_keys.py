"""Error keys: equal for failures that are the same error, whatever their values are.

    ValueError: user 'ann' has 3 files in /home/ann        type     ValueError
                                                     ─▶    message  user # has # files in #
      File "/srv/app/jobs.py", line 12, in clean           place    jobs.py, clean
        raise ValueError(...)

The key is of these three. A line number is no part of the place: the error stays the same when code
above it changes. A text without a type, such as the message of a SQL function or a command, is all
message.
"""

import re
from functools import lru_cache
from hashlib import sha1
from typing import NamedTuple

from mainspring.domain.types import AttemptStatus

FAILED: frozenset[AttemptStatus] = frozenset(
    {AttemptStatus.FAILED, AttemptStatus.TIMEOUT, AttemptStatus.LOST}
)
"""How an attempt ends that counts as an error."""
LOST_WORKER = "the worker is gone"
"""Stands for the error of an attempt whose worker is gone, which the database ends."""
OTHER_KEY = "~other"
"""The key of what is beyond the groups that a definition may have a day."""
SAMPLE_LENGTH = 200

# The line is normalized before it is cut, so that a long value does not move the cut.
_LONGEST_LINE = 1000
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = '\n  File "'
_TYPE = re.compile(r"([A-Za-z_][\w.]*)(?:: |:?$)")
# What differs between failures of one error. Each begins where a word does, which a plain word is
# skipped for, and gives nothing back: the time is linear, whatever the text is.
_VALUE = re.compile(
    r"""
    (?<!\w)(?![A-Za-z]{1,7}+(?:[\s,]|$))(?:
        [bBrRuU]{0,2}'(?:[^'\\]|\\.)*+(?:'(?!\w)|$)   # quoted, or cut within quotes
      | [bBrRuU]{0,2}"(?:[^"\\]|\\.)*+(?:"|$)
      | `[^`]*+(?:`|$)
      | (?<![.~-])(?:[A-Za-z]:)?[\w.~-]*+(?::/|[/\\])[^\s"'`<>(),;]*+   # a path or an address
      | [0-9a-fA-F]{8,}+(?:-[0-9a-fA-F]{4,}+)*+(?!\w)   # hexadecimal, UUID
      | [-+]?[^\W\d]*+\d\w*+(?:[.,:+-]+[^\W\d]*+\d\w*+)*+   # a word with digits
    )
    """,
    re.VERBOSE,
)


class ErrorSummary(NamedTuple):
    """The key of an error, and the line that shows it."""

    key: str
    sample: str


def summarize(error: str) -> ErrorSummary:
    """Of an error as it is stored, which is redacted: so are the sample, and what the key is of."""
    line, place = _line_of(error), _place_of(error)
    return ErrorSummary(_key_of(line[:_LONGEST_LINE], place), line[:SAMPLE_LENGTH])


def summarize_end(status: AttemptStatus, error: str | None) -> ErrorSummary | None:
    """None if the attempt did not end with an error."""
    return summarize(error or str(status)) if status in FAILED else None


def normalize(message: str) -> str:
    """The message without numbers, identifiers, quoted texts, paths and addresses."""
    return _VALUE.sub("#", message)


def _line_of(error: str) -> str:
    """The first line; of a traceback as Python writes it, the last."""
    if error.startswith(_TRACEBACK):
        return error.rstrip().rpartition("\n")[2].strip()
    return error.partition("\n")[0].strip()


def _place_of(error: str) -> str:
    """The file, without its folder, and the function of the innermost frame."""
    at = error.rfind(_FRAME)
    if at < 0:
        return ""
    end = error.find("\n", at + 1)
    path, _, rest = error[at + len(_FRAME) : end if end >= 0 else None].rpartition('", line ')
    name = path.replace("\\", "/").rpartition("/")[2]
    return f"{name}\n{rest.partition(', in ')[2]}"


@lru_cache(maxsize=1024)
def _key_of(line: str, place: str) -> str:
    found = _TYPE.match(line)
    kind, message = (found[1], line[found.end() :]) if found else ("", line)
    text = f"{kind}\n{normalize(message)}\n{place}"
    return sha1(text.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:12]
