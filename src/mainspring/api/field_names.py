"""Suggestions for a field of a body that a request does not have."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, get_args

from pydantic import BaseModel

from mainspring.domain.suggestions import did_you_mean

# What other job queues call it.
_ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "job_type": "definition",
        "job": "definition",
        "job_name": "definition",
        "task": "definition",
        "type": "definition",
        "kind": "definition",
        "args": "payload",
        "arguments": "payload",
        "data": "payload",
        "kwargs": "payload",
        "params": "payload",
        "run_at": "scheduled_for",
        "scheduled_at": "scheduled_for",
        "unique_key": "dedupe_key",
        "tenant_id": "tenant",
        "cron_expression": "cron",
    }
)


def with_hint(fault: Mapping[str, Any], body: Any) -> Mapping[str, Any]:
    """The fault as pydantic reports it, and the field that was probably meant by one that the type
    of the body does not have."""
    if fault["type"] != "extra_forbidden":
        return fault
    _, *path, name = fault["loc"]
    return {**fault, "hint": _hint(str(name), _fields(body, path))}


def _hint(name: str, known: Sequence[str]) -> str:
    meant = _ELSEWHERE.get(name)
    return f"; did you mean {meant}?" if meant in known else did_you_mean(name, known)


def _fields(body: Any, path: Sequence[str | int]) -> list[str]:
    """The fields that there are at a path inside the body."""
    models = list(_models(body))
    for part in path:
        if isinstance(part, str):
            found = [each.model_fields[part] for each in models if part in each.model_fields]
            models = [model for field in found for model in _models(field.annotation)]
    return sorted({name for model in models for name in model.model_fields})


def _models(hint: Any) -> Iterator[type[BaseModel]]:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        yield hint
    for each in get_args(hint):
        yield from _models(each)
