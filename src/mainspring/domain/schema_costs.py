"""What it takes to check a payload against a JSON Schema, known before anything is checked.

A schema says how many subschemas may look at one value at most. Those for different members look at
different values, so an object with a hundred properties is no more than its longest one; `anyOf`
with a hundred choices is a hundred, and a definition counts as often as it is referred to. So many
times the values of a payload is an upper bound of the steps that a check takes, of a tenth to half
a microsecond each. A schema that refers to itself is followed once: the engine remembers what it
has checked on the way.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

MOST_CHECK_STEPS = 10_000_000
# So few that a check holds nobody up: some milliseconds.
QUICK_STEPS = 50_000
# More than any payload can afford; there it ends.
_ENDLESS = 1_000_000_000
# Keywords with subschemas that look at the same value as others do, as a schema, list or object.
_TOGETHER = frozenset(
    ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "propertyNames", "contains")
)
_TOGETHER_BY_NAME = frozenset(("dependentSchemas", "dependencies", "patternProperties"))
# Those of which one looks at a member.
_UNEVALUATED = frozenset(("unevaluatedItems", "unevaluatedProperties"))
_ONE_OF_THEM = _UNEVALUATED | frozenset(
    ("prefixItems", "items", "additionalItems", "additionalProperties")
)
_REFERENCES = frozenset(("$ref", "$dynamicRef", "$recursiveRef"))
_ANCHORS = ("$anchor", "$dynamicAnchor")
_VALUES = frozenset(("default", "examples", "enum", "const"))
# To compare a value with a list or an object takes longer than with a word.
_STEPS_OF_A_MEMBER = 4


def steps_of_a_value(document: object) -> int:
    """How many subschemas may look at one value at most, and at least one."""
    try:
        return _Costs(document).of(document)
    except RecursionError:
        return _ENDLESS


def count_values(text: bytes) -> int:
    """How many values JSON has, or a few more: commas in strings count too."""
    return 1 + text.count(b",") + text.count(b"[") + text.count(b"{")


class _Costs:
    def __init__(self, document: object) -> None:
        self._document = document
        self._known: dict[int, int] = {}
        self._anchors: dict[str, list[object]] = {}
        self._has_own_ids = False
        root = document if isinstance(document, Mapping) else {}
        identifier = "id" if "draft-04" in str(root.get("$schema")) else "$id"
        for node in _schemas(document):
            for name in _ANCHORS:
                if isinstance(anchor := node.get(name), str):
                    self._anchors.setdefault(f"#{anchor}", []).append(node)
            if isinstance(node.get(identifier), str) and node is not document:
                self._has_own_ids = True

    def of(self, schema: object) -> int:
        if not isinstance(schema, Mapping):
            return 1
        known = self._known.get(id(schema))
        if known is None:
            self._known[id(schema)] = 1  # For what refers back to it.
            known = self._known[id(schema)] = min(self._find(schema), _ENDLESS)
        return known

    def _find(self, schema: Mapping[str, Any]) -> int:
        cost, largest = 1, 0
        for name, value in schema.items():
            if name == "properties":
                largest = max(largest, self._largest(_named(value)))
            elif name in _ONE_OF_THEM:
                largest = max(largest, self._largest(_listed(value)))
            elif name in _TOGETHER:
                cost += sum(map(self.of, _listed(value)))
            elif name in _TOGETHER_BY_NAME:
                cost += sum(map(self.of, _named(value)))
            elif name in _REFERENCES:
                cost += self._referred(value)
            elif name == "enum":
                cost += _comparisons(value)
        # These look again at all that the others have looked at.
        return (cost + largest) * (1 if _UNEVALUATED.isdisjoint(schema) else 2)

    def _largest(self, schemas: Iterable[object]) -> int:
        return max(map(self.of, schemas), default=0)

    def _referred(self, reference: object) -> int:
        if not isinstance(reference, str):
            return 1
        if self._has_own_ids:
            return _ENDLESS  # It may start from any of them.
        if reference in self._anchors:
            return sum(map(self.of, self._anchors[reference]))
        return self.of(self._target(reference))

    def _target(self, reference: str) -> object:
        node = self._document
        for part in unquote(reference).lstrip("#").split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, Mapping):
                node = node.get(name)
            elif isinstance(node, list) and name.isdecimal() and int(name) < len(node):
                node = node[int(name)]
            else:
                return None
        return node


def _comparisons(members: object) -> int:
    """What it takes to compare a value with members of an enum; words are looked up at once."""
    members = _listed(members)
    is_simple = not any(isinstance(each, list | Mapping) for each in members)
    return 0 if is_simple else _STEPS_OF_A_MEMBER * len(members)


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _named(value: object) -> Iterable[object]:
    return value.values() if isinstance(value, Mapping) else ()


def _schemas(document: object) -> Iterator[Mapping[str, Any]]:
    """Every object that may be a schema."""
    waiting = [document]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Mapping):
            yield node
            waiting += [each for name, each in node.items() if name not in _VALUES]
        elif isinstance(node, list | tuple):
            waiting += node
