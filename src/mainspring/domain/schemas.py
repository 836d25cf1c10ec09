"""JSON Schemas of payloads: what a definition asks for, and what a payload lacks.

A schema is all there is: one that refers to another place is refused, so nothing is ever fetched.
Patterns are matched by an engine whose time grows with the text alone, so no pattern can hang.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import jsonschema_rs

from mainspring.domain.errors import InvalidDefinition, InvalidPayload

_MOST_SHOWN = 3
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef", "$schema")
_DRAFTS = ("http://json-schema.org/", "https://json-schema.org/")


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a payload: where, by which rule, in words without the value."""

    path: str
    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message} (rule {self.rule})"


class Schema:
    """The schema of one definition, ready to check payloads."""

    def __init__(self, key: str, document: Mapping[str, Any]) -> None:
        _ensure_local(key, document)
        try:
            self._validator = jsonschema_rs.validator_for(
                dict(document),
                validate_formats=True,
                # A value may be a secret, and a sentence goes to logs and screens.
                mask="the value",
                pattern_options=jsonschema_rs.RegexOptions(),
                retriever=_fetch_nothing,
            )
        except (ValueError, jsonschema_rs.ValidationError) as error:
            problem = str(error).partition("\n")[0]
            raise InvalidDefinition(
                f"{key}: arg_schema is not a valid JSON Schema: {problem}"
            ) from None

    def problems(self, payload: object) -> Iterator[Problem]:
        for error in self._validator.iter_errors(payload):
            yield Problem(
                "/".join(("payload", *map(str, error.instance_path))),
                "/".join(map(str, error.schema_path)),
                error.message,
            )

    def ensure(self, payload: object) -> None:
        """Raise InvalidPayload with what is wrong, by its place and rule."""
        if self._validator.is_valid(payload):
            return
        found = list(self.problems(payload))
        problems = "; ".join(map(str, found[:_MOST_SHOWN]))
        more = len(found) - _MOST_SHOWN
        raise InvalidPayload(f"{problems}{f'; and {more} more' if more > 0 else ''}")


def _ensure_local(key: str, document: object) -> None:
    for name, target in _references(document):
        is_draft = name == "$schema" and target.startswith(_DRAFTS)
        if not is_draft and not target.startswith("#"):
            raise InvalidDefinition(
                f"{key}: arg_schema refers to {target!r}; a schema must be self-contained"
            )


def _references(document: object) -> Iterator[tuple[str, str]]:
    waiting = [document]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            for name in _REFERENCES:
                if isinstance(target := node.get(name), str):
                    yield name, target
            waiting += node.values()
        elif isinstance(node, list | tuple):
            waiting += node


def _fetch_nothing(uri: str) -> Any:
    raise ValueError(f"{uri} is external")
