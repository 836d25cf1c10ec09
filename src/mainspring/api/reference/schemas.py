"""Schemas as HTML: types, tables of fields, examples."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import orjson

Schema = Mapping[str, Any]


def name_of(schema: Schema) -> str | None:
    """The name of the schema that this one refers to."""
    return schema["$ref"].rpartition("/")[2] if "$ref" in schema else None


def type_of(schema: Schema) -> str:
    """The type as people write it, with links to named schemas."""
    name = name_of(schema)
    if name is not None:
        return f'<a href="#schema-{escape(name)}">{escape(name)}</a>'
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(type_of(each) for each in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return choices(schema.get("enum") or [schema["const"]])
    return _plain_type(schema)


def _plain_type(schema: Schema) -> str:
    if schema.get("type") == "array":
        return f"list of {type_of(schema.get('items', {}))}"
    if isinstance(schema.get("additionalProperties"), Mapping):
        return f"object of {type_of(schema['additionalProperties'])}"
    return escape(schema.get("format") or schema.get("type") or "any JSON")


def choices(words: Sequence[Any]) -> str:
    return " | ".join(f"<code>{escape(str(word))}</code>" for word in words)


def bounds_of(schema: Schema) -> str:
    """What else a value has to fit."""
    kinds = [schema, *schema.get("anyOf", ())]
    shown = {
        "minimum": "from {}",
        "maximum": "to {}",
        "minLength": "{} characters or more",
        "maxLength": "at most {} characters",
        "maxItems": "at most {} items",
    }
    found = [
        text.format(f"{kind[name]:,}")
        for name, text in shown.items()
        for kind in kinds
        if name in kind and not (name == "minLength" and kind[name] == 1)
    ]
    if schema.get("default") is not None:
        found.append(f"default <code>{escape(_json(schema['default']))}</code>")
    return ", ".join(dict.fromkeys(found))


def fields(schema: Schema) -> str:
    """A table of the properties of a schema."""
    required = schema.get("required", ())
    rows = [
        _row(name, described, is_required=name in required)
        for name, described in schema.get("properties", {}).items()
    ]
    return table(("Field", "Type", "Meaning"), rows)


def _row(name: str, schema: Schema, *, is_required: bool) -> tuple[str, str, str]:
    mark = ' <span class="required">required</span>' if is_required else ""
    example = _json(schema["examples"][0]) if schema.get("examples") else ""
    shown = f'<div class="example">e.g. <code>{escape(shortened(example))}</code></div>'
    return (
        f"<code>{escape(name)}</code>{mark}",
        type_of(schema),
        meaning(schema.get("description", ""), bounds_of(schema)) + (shown if example else ""),
    )


def meaning(description: str, bounds: str) -> str:
    said = prose(description)
    return f'{said} <span class="bounds">{bounds}</span>' if bounds else said


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "".join(f"<tr>{_cells(heads, row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(heads: Sequence[str], row: Sequence[str]) -> str:
    named = zip(heads, row, strict=True)
    return "".join(f'<td data-label="{head}">{cell}</td>' for head, cell in named)


def prose(text: str) -> str:
    """A description, in which `words` are code."""
    parts = escape(" ".join(text.split())).split("`")
    return "".join(
        f"<code>{part}</code>" if number % 2 else part for number, part in enumerate(parts)
    )


def block(text: str, label: str) -> str:
    """Text to read and to copy."""
    return (
        f'<figure class="block"><figcaption>{escape(label)}</figcaption>'
        f'<pre tabindex="0"><code>{escape(text)}</code></pre></figure>'
    )


def pretty(value: Any) -> str:
    return (
        value
        if isinstance(value, str)
        else orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()
    )


def shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
