"""What a SQL function answers: `{"success": true, "message": "...", "details": {...}}`."""

import json
from typing import Any

from mainspring.domain.jobs.outcomes import AttemptFailed

_CONTRACT = 'a function must return {"success": true or false, "message": "..."}'
MAX_ANSWER_BYTES = 1024 * 1024
# What else to do about a role that nobody can log in as.
OR_TRUSTED = (
    "or set trusted on the definition to accept that it runs through Mainspring's own login"
)
_SHOWN = 500
_KINDS = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array"}


class AnswerTooLarge(AttemptFailed):
    """The function returned more than can be stored, and would do so again."""


def parse_answer(text: str | None, size: int | None) -> object:
    """The answer as the database gave it, as JSON text; one that is too large has only a size."""
    if size is not None and size > MAX_ANSWER_BYTES:
        raise AnswerTooLarge(
            f"the function returned {size:,} bytes, the limit is {MAX_ANSWER_BYTES:,}; store the "
            "data in a table and return a reference to it"
        )
    try:
        return None if text is None else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise AttemptFailed(f"the function returned JSON that cannot be read: {error}") from None


def read_answer(answer: object) -> dict[str, Any]:
    """The answer of a function that did its work; raises AttemptFailed with what came back."""
    if answer is None:
        raise AttemptFailed(f"the function returned null; {_CONTRACT}")
    if not isinstance(answer, dict):
        kind = _KINDS.get(type(answer), type(answer).__name__)
        raise AttemptFailed(f"the function returned {kind}, {_show(answer)}; {_CONTRACT}")
    if "success" not in answer:
        raise AttemptFailed(f"the function returned no 'success': {_show(answer)}; {_CONTRACT}")
    if not isinstance(answer["success"], bool):
        shown = _show(answer["success"])
        raise AttemptFailed(f"the function returned {shown} as 'success'; {_CONTRACT}")
    if not answer["success"]:
        raise AttemptFailed(_refusal(answer), answer)
    return answer


def _refusal(answer: dict[str, Any]) -> str:
    message = answer.get("message")
    reason = message if isinstance(message, str) and message else "no message was given"
    details = f"\n{_show(answer['details'])}" if answer.get("details") else ""
    return f"the function returned success: false; {reason}{details}"


def _show(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
