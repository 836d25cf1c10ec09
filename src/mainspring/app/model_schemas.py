"""JSON Schemas of annotations that only pydantic understands: models, constraints, secrets.

Who writes such an annotation has imported pydantic, so nobody waits for it here. A model converts
what it is given, from a text to a number for instance, and a validator may take anything: so the
values of its fields are constrained no more than pydantic itself would.
"""

import sys
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from mainspring.domain.argument_schemas import Document
from mainspring.domain.schemas import Schema, ensure_affordable

if TYPE_CHECKING:
    from pydantic.json_schema import GenerateJsonSchema

_TEXT: Document = {"type": "string"}
_TEXT_OR_NUMBER: Document = {"type": ["string", "number"]}
_PLAIN: Mapping[str, Document] = {
    "datetime_schema": _TEXT_OR_NUMBER,
    "date_schema": _TEXT_OR_NUMBER,
    "time_schema": _TEXT_OR_NUMBER,
    "timedelta_schema": _TEXT_OR_NUMBER,
    "decimal_schema": _TEXT_OR_NUMBER,
    "complex_schema": _TEXT_OR_NUMBER,
    "uuid_schema": _TEXT,
    "bytes_schema": _TEXT,
    "url_schema": _TEXT,
    "multi_host_url_schema": _TEXT,
    "call_schema": {"type": ["array", "object"]},
}
_CONVERTED = ("int_schema", "float_schema", "bool_schema")
_NOT_SAID = ("format", "uniqueItems", "discriminator", "title", "examples")
_NAMED = ("properties", "$defs")
_VALUES = ("default", "const", "enum")
_RENAMED = {"oneOf": "anyOf"}


def describe_model(name: str, annotation: Any) -> Document | None:
    """The JSON Schema of a parameter; None if pydantic is not in use or has none either."""
    if not {"pydantic", "annotated_types"} & sys.modules.keys():
        return None
    from pydantic import TypeAdapter  # noqa: PLC0415 - slow to import

    prefix = f"{name}."
    try:
        document: Document = TypeAdapter(annotation).json_schema(
            ref_template=f"#/$defs/{prefix}{{model}}", schema_generator=_generator()
        )
        document = _loose(document)
        defined = document.pop("$defs", {})
        document["$defs"] = {f"{prefix}{model}": each for model, each in defined.items()}
        ensure_affordable(name, document)
        Schema(name, {"properties": {name: document}, "$defs": document["$defs"]})
    except Exception:  # noqa: BLE001 - classes of others take part, and may raise anything
        return None
    return document


def _loose(node: Any) -> Any:
    """A copy without what the values that a handler takes need not have."""
    if isinstance(node, list):
        return [_loose(each) for each in node]
    if not isinstance(node, dict):
        return node
    kept = {}
    for keyword, value in node.items():
        if keyword in _NAMED:
            kept[keyword] = {name: _loose(each) for name, each in value.items()}
        elif keyword in _VALUES:
            kept[keyword] = value
        elif keyword not in _NOT_SAID:
            kept[_RENAMED.get(keyword, keyword)] = _loose(value)
    return kept


@cache
def _generator() -> "type[GenerateJsonSchema]":
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415 - slow to import

    class Generator(GenerateJsonSchema):
        """As lenient as what it describes."""

        inside = 0

        def model_schema(self, schema: Any) -> Document:
            self.inside += 1
            try:
                document = super().model_schema(schema)
            finally:
                self.inside -= 1
            return _with_names(document, schema["cls"])

        def function_before_schema(self, schema: Any) -> Document:
            return {"anyOf": [super().function_before_schema(schema), {}]}

        def function_wrap_schema(self, schema: Any) -> Document:
            return {"anyOf": [super().function_wrap_schema(schema), {}]}

        def function_plain_schema(self, schema: Any) -> Document:
            return {}

    for method, document in _PLAIN.items():
        setattr(Generator, method, _answering(document))
    for method in _CONVERTED:
        setattr(Generator, method, _converting(getattr(GenerateJsonSchema, method)))
    return Generator


def _answering(document: Document) -> Any:
    return lambda self, schema: dict(document)


def _converting(method: Any) -> Any:
    """In a model numbers and truth values are read from texts and from each other."""

    def describe(self: Any, schema: Any) -> Document:
        document: Document = method(self, schema)
        is_open = self.inside and not schema.get("strict")
        return {**document, "type": ["number", "boolean", "string"]} if is_open else document

    return describe


def _with_names(document: Document, model: Any) -> Document:
    """A model that goes by other names as well needs none of them in particular."""
    fields = getattr(model, "__pydantic_fields__", {})
    config = getattr(model, "model_config", {})
    by_name = config.get("populate_by_name") or config.get("validate_by_name")
    aliases = {name: field.validation_alias for name, field in fields.items()}
    is_plain = all(alias is None or isinstance(alias, str) for alias in aliases.values())
    if is_plain and not (by_name and any(aliases.values())):
        return document
    left_out = ("required", "additionalProperties")
    kept = {keyword: each for keyword, each in document.items() if keyword not in left_out}
    properties = dict(document.get("properties", {}))
    for name, alias in aliases.items():
        names = {name, *_texts(alias)}
        for known in names & document.get("properties", {}).keys():
            properties.update(dict.fromkeys(names, properties[known]))
    return {**kept, "properties": properties}


def _texts(alias: Any) -> list[str]:
    choices = getattr(alias, "choices", [alias])
    return [each for each in choices if isinstance(each, str)]
