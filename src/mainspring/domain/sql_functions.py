"""What a SQL function answers: `{"success": true, "message": "...", "details": {...}}`."""

import json
from typing import Any

from mainspring.domain.jobs.outcomes import AttemptFailed

_CONTRACT = 'a function must return {"success": true or false, "message": "..."}'
_SHOWN = 500
_KINDS = {str: "a string", bool: "a boolean", int: "a number", float: "a number", list: "an array"}


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
        raise AttemptFailed(_refusal(answer))
    return answer


def _refusal(answer: dict[str, Any]) -> str:
    message = answer.get("message")
    reason = message if isinstance(message, str) and message else "no message was given"
    details = f"\n{_show(answer['details'])}" if answer.get("details") else ""
    return f"the function returned success: false; {reason}{details}"


def _show(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
