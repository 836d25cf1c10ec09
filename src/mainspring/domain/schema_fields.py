"""Which fields an object may have, as far as its JSON Schema names them."""

from collections.abc import Iterator, Mapping
from typing import Any

# Keywords whose schemas describe the same object.
_LISTS = ("allOf", "anyOf", "oneOf")
_SINGLES = ("if", "then", "else")
_MAPS = ("dependentSchemas",)


def known_fields(document: Mapping[str, Any]) -> frozenset[str] | None:
    """The properties that a schema names; None where it leaves open which there are."""
    names: set[str] = set()
    for schema in _schemas_of_the_object(document, document, set()):
        if schema is None or schema.get("patternProperties"):
            return None
        names |= schema.get("properties", {}).keys()
    return frozenset(names) or None


def _schemas_of_the_object(
    schema: Any, root: Mapping[str, Any], seen: set[int]
) -> Iterator[Mapping[str, Any] | None]:
    """The schema and all that it applies to the same object; None for one that is not here."""
    if not isinstance(schema, Mapping) or id(schema) in seen:
        return
    seen.add(id(schema))
    yield schema
    parts = [part for name in _LISTS for part in schema.get(name, ())]
    parts += [schema[name] for name in _SINGLES if name in schema]
    parts += [part for name in _MAPS for part in schema.get(name, {}).values()]
    for part in parts:
        yield from _schemas_of_the_object(part, root, seen)
    if "$ref" in schema or "$dynamicRef" in schema:
        target = _resolve(schema.get("$ref"), root)
        if target is None:
            yield None
        yield from _schemas_of_the_object(target, root, seen)


def _resolve(reference: object, root: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A schema by a pointer into the same document; None for any other."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    found: Any = root
    for part in reference[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        found = found.get(name) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) else None
