"""Where a payload holds secrets: the fields that its JSON Schema marks, as paths.

A field is marked by `writeOnly: true` or `format: password`. A path is a list of names; `*` stands
for any element of an array and any name of an object. What cannot be told apart is taken for
secret: a schema that refers to itself has endless paths, so from its second round on the whole
value is one; so is what lies very deep, and what a reference by anchor stands for. A schema too
large to walk marks everything.

The SQL function mainspring.secret_paths finds the same, for schemas that SQL alone has seen.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str, ...]
Place = tuple[str | int, ...]
Change = Callable[[Any, Place], Any]

ANY = "*"
REDACTED = "[redacted]"
ENCRYPTION_MARK = "$mainspring"
ENCRYPTED = "encrypted"
MARKED_NAME = b'"$mainspring":'
"""The mark as a name in compact JSON. The quotes of a text have backslashes before them, so this
stands nowhere else, except in a name that ends in a quote and the mark."""
USES_MARK = (
    f"uses the name {ENCRYPTION_MARK!r}, which is reserved for encrypted values; rename the field"
)
_MOST_NODES = 10_000
_DEEPEST = 50
_ROOT = "#"
# A text this short stands in ordinary words too; to hide it would shred them.
SHORTEST_SECRET = 4

_NAMED = ("properties",)
_ALIKE_BY_NAME = ("patternProperties",)
_HERE_BY_NAME = ("dependentSchemas", "dependencies")
_INSIDE = (
    *("additionalProperties", "unevaluatedProperties", "items", "prefixItems"),
    *("additionalItems", "unevaluatedItems", "contains"),
)
_HERE = ("allOf", "anyOf", "oneOf", "if", "then", "else")
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")


@dataclass(frozen=True, slots=True)
class _Node:
    """A subschema: what it is about, and the references that led to it."""

    schema: Mapping[str, Any]
    path: Path
    references: frozenset[str]


@dataclass(slots=True)
class _Findings:
    """Marked paths, and the ends of walks that went in a circle, with what they came back to."""

    marked: set[Path] = field(default_factory=set)
    leading: set[str] = field(default_factory=set)
    circles: list[tuple[_Node, str]] = field(default_factory=list)

    def mark(self, node: _Node) -> None:
        self.marked.add(node.path)
        self.leading |= node.references

    def close_circles(self) -> None:
        """Mark each that comes back to where a marked field can be reached from."""
        while closing := [node for node, target in self.circles if target in self.leading]:
            self.circles = [each for each in self.circles if each[1] not in self.leading]
            for node in closing:
                self.mark(node)


def secret_paths(schema: Mapping[str, Any] | None) -> tuple[Path, ...]:
    """The paths of all marked fields, in order; none below another."""
    if schema is None or not _mentions_secrets(schema):
        return ()
    findings = _Findings()
    waiting = [_Node(schema, (), frozenset({_ROOT}))]
    walked = 0
    while waiting:
        node = waiting.pop()
        walked += 1
        if walked > _MOST_NODES:
            return ((ANY,),)
        if _is_marked(node.schema) or len(node.path) == _DEEPEST:
            findings.mark(node)
        else:
            waiting += _children(node)
            waiting += _referred(node, schema, findings)
    findings.close_circles()
    return _shortest(findings.marked)


def _is_marked(schema: Mapping[str, Any]) -> bool:
    return schema.get("writeOnly") is True or schema.get("format") == "password"


def _mentions_secrets(document: object) -> bool:
    waiting = [document]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            if _is_marked(node):
                return True
            waiting += node.values()
        elif isinstance(node, list | tuple):
            waiting += node
    return False


def _children(node: _Node) -> Iterator[_Node]:
    for schema, steps in _parts(node.schema):
        if isinstance(schema, Mapping):
            yield _Node(schema, node.path + steps, node.references)


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[Any, Path]]:
    for keyword in (*_NAMED, *_ALIKE_BY_NAME, *_HERE_BY_NAME):
        members = schema.get(keyword)
        if isinstance(members, Mapping):
            for name, member in members.items():
                yield member, _steps(keyword, name)
    for keyword in (*_INSIDE, *_HERE):
        part = schema.get(keyword)
        for member in part if isinstance(part, list | tuple) else (part,):
            yield member, _steps(keyword, ANY)


def _steps(keyword: str, name: str) -> Path:
    if keyword in _NAMED:
        return (name,)
    return () if keyword in _HERE or keyword in _HERE_BY_NAME else (ANY,)


def _referred(node: _Node, document: Mapping[str, Any], findings: _Findings) -> Iterator[_Node]:
    for keyword in _REFERENCES:
        target = node.schema.get(keyword)
        if not isinstance(target, str):
            continue
        if target in node.references:
            findings.circles.append((node, target))
            continue
        schema = _resolve(document, target)
        if schema is None:
            findings.mark(node)
        elif isinstance(schema, Mapping):
            yield _Node(schema, node.path, node.references | {target})


def _resolve(document: Mapping[str, Any], target: str) -> Any:
    """What a pointer such as #/$defs/login points to; None for what is not understood."""
    if not target.startswith("#/") or "%" in target:
        return None
    found: Any = document
    for part in target[2:].split("/"):
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping) and name in found:
            found = found[name]
        elif isinstance(found, list | tuple) and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        else:
            return None
    return found


def _shortest(paths: set[Path]) -> tuple[Path, ...]:
    if () in paths:
        return ((ANY,),)
    kept = (
        path for path in paths if not any(path[:length] in paths for length in range(len(path)))
    )
    return tuple(sorted(kept))


# Payloads


def is_encrypted(value: object) -> bool:
    """Whether a value is encrypted."""
    return isinstance(value, Mapping) and value.get(ENCRYPTION_MARK) == ENCRYPTED


def changed_at(value: Any, paths: tuple[Path, ...], change: Change) -> Any:
    """A copy in which the values at the paths are changed; null stays null."""
    for path in paths:
        value = _changed(value, path, change, place=())
    return value


def _changed(value: Any, path: Path, change: Change, *, place: Place) -> Any:
    if value is None:
        return None
    if not path:
        return change(value, place)
    if is_encrypted(value):
        return value
    step, rest = path[0], path[1:]
    if isinstance(value, Mapping):
        return {
            name: _changed(member, rest, change, place=(*place, name))
            if step in (ANY, name)
            else member
            for name, member in value.items()
        }
    if isinstance(value, list | tuple) and step == ANY:
        return [
            _changed(member, rest, change, place=(*place, index))
            for index, member in enumerate(value)
        ]
    return value


def redact(value: Any, paths: tuple[Path, ...]) -> Any:
    """A copy that may be shown."""
    return changed_at(value, paths, lambda *_: REDACTED)


def secrets_in(value: Any, paths: tuple[Path, ...]) -> set[str]:
    """The secret texts, numbers as text; not those too short to be told from ordinary words."""
    found: set[str] = set()

    def collect(secret: Any, _: Place) -> Any:
        found.update(texts_in(secret))
        return secret

    changed_at(value, paths, collect)
    return found


def texts_in(value: Any) -> Iterator[str]:
    """All texts and numbers of a value that are long enough to be secrets, and names that are no
    plain words."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            waiting += item.values()
            yield from (name for name in item if _may_be_secret(name))
        elif isinstance(item, list | tuple):
            waiting += item
        elif isinstance(item, str | int | float) and not isinstance(item, bool):
            text = str(item)
            if len(text) >= SHORTEST_SECRET:
                yield text


def _may_be_secret(name: str) -> bool:
    """To hide the name of a field wherever it is used as a word would shred ordinary texts."""
    is_word = name.isidentifier() and not any(letter.isdigit() for letter in name)
    return len(name) >= SHORTEST_SECRET and not is_word
