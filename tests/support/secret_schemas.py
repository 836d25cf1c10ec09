"""JSON Schemas with marked fields, and where they are; the program and SQL must both find them."""

from typing import Any

MARKED: dict[str, Any] = {"type": "string", "writeOnly": True}
PASSWORD: dict[str, Any] = {"type": "string", "format": "password"}
PLAIN: dict[str, Any] = {"type": "string"}


def _nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = MARKED
    for _ in range(depth):
        schema = {"properties": {"in": schema}}
    return schema


def _doubling(depth: int) -> dict[str, Any]:
    """Every definition refers to the next twice, so that there are 2 to the depth paths."""
    definitions: dict[str, Any] = {
        f"d{n}": {"properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in "ab"}}
        for n in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, f"d{depth}": MARKED}}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


# By what it shows: the schema, and the paths of its secrets.
CORPUS: dict[str, tuple[dict[str, Any], set[tuple[str, ...]]]] = {
    "nothing": ({}, set()),
    "no mark": (of(user=PLAIN), set()),
    "write-only": (of(user=PLAIN, password=MARKED), {("password",)}),
    "format": (of(password=PASSWORD), {("password",)}),
    "write-only that is false": (of(password={"writeOnly": False}), set()),
    "write-only that is a text": (of(password={"writeOnly": "true"}), set()),
    "another format": (of(mail={"format": "email"}), set()),
    "object inside": (of(login=of(user=PLAIN, word=MARKED)), {("login", "word")}),
    "a whole object": (of(login={**of(word=PLAIN), "writeOnly": True}), {("login",)}),
    "below a marked one": (of(login={**of(word=MARKED), "writeOnly": True}), {("login",)}),
    "elements": (of(tokens={"items": MARKED}), {("tokens", "*")}),
    "elements by place": (of(pair={"prefixItems": [PLAIN, MARKED]}), {("pair", "*")}),
    "elements of an old draft": (of(pair={"items": [PLAIN, MARKED]}), {("pair", "*")}),
    "elements that are objects": (of(all={"items": of(word=MARKED)}), {("all", "*", "word")}),
    "contained": (of(all={"contains": MARKED}), {("all", "*")}),
    "any other name": (of(a=PLAIN) | {"additionalProperties": MARKED}, {("*",)}),
    "names by pattern": ({"patternProperties": {"_key$": MARKED}}, {("*",)}),
    "all of": ({"allOf": [of(a=MARKED), of(b=PLAIN)]}, {("a",)}),
    "any and one of": ({"anyOf": [of(a=MARKED)], "oneOf": [of(b=PASSWORD)]}, {("a",), ("b",)}),
    "conditions": (
        {"if": of(a=PLAIN), "then": of(b=MARKED), "else": of(c=MARKED)},
        {("b",), ("c",)},
    ),
    "dependent": ({"dependentSchemas": {"a": of(b=MARKED)}}, {("b",)}),
    "dependencies": ({"dependencies": {"a": of(b=MARKED), "c": ["d"]}}, {("b",)}),
    "a name like a step": (of(**{"*": MARKED, "a/b": MARKED}), {("*",), ("a/b",)}),
    "a name like a keyword": (of(writeOnly=PLAIN, format=MARKED), {("format",)}),
    "a field called properties": (of(properties=of(a=MARKED)), {("properties", "a")}),
    "a reference": (
        of(login={"$ref": "#/$defs/login"}) | {"$defs": {"login": of(word=MARKED)}},
        {("login", "word")},
    ),
    "a reference beside others": (
        {"$ref": "#/$defs/a", **of(b=MARKED), "$defs": {"a": of(a=MARKED)}},
        {("a",), ("b",)},
    ),
    "a pointer with escapes": (
        of(a={"$ref": "#/$defs/x~1y~0z"}) | {"$defs": {"x/y~z": MARKED}},
        {("a",)},
    ),
    "a pointer into a list": (of(a={"$ref": "#/allOf/0"}) | {"allOf": [MARKED]}, {("*",)}),
    "a definition nobody uses": (of(a=PLAIN) | {"$defs": {"word": MARKED}}, set()),
    "an anchor": (
        of(a={"$ref": "#word"}, b=PLAIN) | {"$defs": {"w": {**MARKED, "$anchor": "word"}}},
        {("a",)},
    ),
    "a pointer to nowhere": (of(a={"$ref": "#/$defs/b"}, c=MARKED), {("a",), ("c",)}),
    "a list of itself": (
        of(word=MARKED, next={"$ref": "#"}, name=PLAIN),
        {("word",), ("next",)},
    ),
    "a tree": (
        of(tree={"$ref": "#/$defs/node"})
        | {
            "$defs": {
                "node": of(word=MARKED, children={"items": {"$ref": "#/$defs/node"}}, name=PLAIN)
            }
        },
        {("tree", "word"), ("tree", "children", "*")},
    ),
    "a circle beside a secret": (
        of(word=MARKED, tree={"$ref": "#/$defs/node"})
        | {"$defs": {"node": of(children={"items": {"$ref": "#/$defs/node"}})}},
        {("word",)},
    ),
    "two that refer to each other": (
        {
            "$ref": "#/$defs/a",
            "$defs": {
                "a": of(b={"$ref": "#/$defs/b"}),
                "b": of(a={"$ref": "#/$defs/a"}, word=MARKED),
            },
        },
        {("b", "word"), ("b", "a")},
    ),
    "a circle that leads to a secret by another": (
        {
            "$ref": "#/$defs/a",
            "$defs": {
                "a": of(word=MARKED, r={"$ref": "#/$defs/r"}),
                "r": of(again={"$ref": "#/$defs/r"}, back={"$ref": "#/$defs/a"}),
            },
        },
        {("word",), ("r", "back"), ("r", "again")},
    ),
    "all of it": ({"writeOnly": True}, {("*",)}),
    "a circle on the spot": ({"allOf": [{"$ref": "#"}], **of(a=MARKED)}, {("*",)}),
    "almost too deep": (_nested(49), {("in",) * 49}),
    "too deep": (_nested(60), {("in",) * 50}),
    "too many": (_doubling(15), {("*",)}),
    "booleans for schemas": (of(a=True, b=MARKED) | {"additionalProperties": False}, {("b",)}),
}
