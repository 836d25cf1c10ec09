"""What a handler raised, in words: the exception first, then where it was raised.

A failed attempt must not cost much more than one that succeeds, so tracebacks are bounded before
anything looks at them, and each place in the code is read and formatted once. Unlike Python's own
they do not mark the part of a line.
"""

import linecache
import traceback
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import TracebackType

from mainspring.domain.jobs.outcomes import AttemptFailed
from mainspring.domain.secrets.redaction import NO_SECRETS, Redactor, redact_patterns
from mainspring.runtime.executors.processes import ChildDied, ChildFailed

MAX_MESSAGE_LENGTH = 16_000
"""Characters of what an exception says; with the frames it has to fit into an error."""
FIRST_FRAMES, LAST_FRAMES = 5, 15
"""Those that are shown of a long traceback: where it begins, and where it ends."""
_LONGEST_LINE = 200
_OUR_CODE = str(Path(__file__).parents[1])


def describe(error: BaseException, redactor: Redactor = NO_SECRETS) -> str:
    """The traceback from the handler on, the exception itself first, as people may see it. Each
    part is redacted by itself: a text that is cut may end in the middle of a secret."""
    if isinstance(error, ChildDied | ChildFailed | AttemptFailed):
        return redactor.tail(str(error))
    message = _cut(_message(error), redactor)
    frames = _redacted("".join(_frames(error.__traceback__)))
    return f"{message}\n\n{redactor.text(frames)}" if frames else message


def _message(error: BaseException) -> str:
    """As Python words it; most exceptions need none of what makes that slow."""
    if isinstance(error, SyntaxError) or hasattr(error, "__notes__"):
        return "".join(traceback.format_exception_only(error)).strip()
    kind = type(error)
    is_known = kind.__module__ in ("builtins", "__main__")
    name = kind.__qualname__ if is_known else f"{kind.__module__}.{kind.__qualname__}"
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - a handler's own class may do anything
        text = "<exception str() failed>"
    return f"{name}: {text}".strip() if text else name


def _cut(message: str, redactor: Redactor) -> str:
    if len(message) <= MAX_MESSAGE_LENGTH:
        return redactor.tail(message)
    omitted = len(message) - MAX_MESSAGE_LENGTH
    return f"{redactor.tail(message[:MAX_MESSAGE_LENGTH])}\n... {omitted} characters omitted ..."


def _frames(trace: TracebackType | None) -> Iterator[str]:
    """The frames after the last of our own, the middle of very many left out."""
    frames: list[tuple[str, int, str]] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(_OUR_CODE):
            frames.clear()
        else:
            frames.append((code.co_filename, trace.tb_lineno, code.co_name))
        trace = trace.tb_next
    omitted = len(frames) - FIRST_FRAMES - LAST_FRAMES
    for number, frame in enumerate(frames):
        if number == FIRST_FRAMES and omitted > 0:
            yield f"  ... {omitted} frames omitted ...\n"
        if not FIRST_FRAMES <= number < FIRST_FRAMES + omitted:
            yield _frame(*frame)


@lru_cache(maxsize=256)
def _redacted(frames: str) -> str:
    """Lines of code; most failures of a definition come from the same ones."""
    return redact_patterns(frames)


@lru_cache(maxsize=1024)
def _frame(file: str, line: int, function: str) -> str:
    source = linecache.getline(file, line).strip()[:_LONGEST_LINE]
    place = f'  File "{file}", line {line}, in {function}\n'
    return f"{place}    {source}\n" if source else place
