"""The page itself: what every request has in common, the operations by noun, the schemas."""

from collections.abc import Mapping
from html import escape
from string import Template
from types import MappingProxyType
from typing import Any

from mainspring.api.reference.operations import Operation, operations_of, show_operation
from mainspring.api.reference.schemas import block, choices, fields, pretty, prose

_PAGE = Template(
    """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>$title API</title>
<link rel="stylesheet" href="$root/docs/reference.css">
<script src="$root/docs/reference.js" defer></script>
<a class="skip" href="#content">Skip to the reference</a>
<header><a class="brand" href="$root/">$title</a> <span class="version">API $version</span>
<a href="$root/api/v1/openapi.json">openapi.json</a></header>
<div class="columns">
<nav aria-label="Operations">
<details id="menu" open><summary>Operations</summary>$menu</details>
</nav>
<main id="content"><h1>REST API</h1><p>$description</p>$basics$groups$schemas</main>
</div>
</html>
"""
)

_BASICS: Mapping[str, str] = MappingProxyType(
    {
        "Authentication": """Send a token with every request: `Authorization: Bearer msk_...`.
            Create one with `mainspring tokens create`. The examples take it from the variable
            `TOKEN`.""",
        "Ids, times, durations": """Ids are strings, since JavaScript numbers cannot hold 64 bits;
            requests may use numbers. Instants look like `2026-01-31T12:00:00Z` and need a time
            zone. Durations are in seconds.""",
        "Lists": """A list answers with `items` and `next_cursor`; pass that as `cursor`, with the
            same filters, until it is null.""",
        "Filters": """Repeat a filter for several values: `?state=queued&state=running`. Values of
            one filter are alternatives, and different filters must all match. A comma does not
            separate values. A parameter that a request does not know is refused.""",
        "Repeating a request": """With an `Idempotency-Key` the same request is carried out once,
            however often it is sent within a day. A create without one may be carried out
            twice.""",
        "Changing what others may change": """Send the `ETag` that you have read as `If-Match`; if
            somebody changed it meanwhile, the answer is 412.""",
    }
)


def show_page(document: Mapping[str, Any], *, root: str, base: str) -> str:
    """The whole page; `root` is the path that the server is mounted at, `base` its address."""
    info = document["info"]
    groups = _grouped(document)
    return _PAGE.substitute(
        title=escape(info["title"]),
        version=escape(info["version"]),
        description=prose(info["description"]),
        root=escape(root),
        menu=_menu(groups),
        basics=_basics(document),
        groups="".join(_group(document, tag, found, base=base) for tag, found in groups.items()),
        schemas=_schemas(document["components"]["schemas"]),
    )


def _grouped(document: Mapping[str, Any]) -> dict[str, list[Operation]]:
    groups: dict[str, list[Operation]] = {tag["name"]: [] for tag in document["tags"]}
    for operation in operations_of(document):
        groups.setdefault(operation.tag, []).append(operation)
    return groups


def _menu(groups: Mapping[str, list[Operation]]) -> str:
    parts = ['<div id="search"></div><ul><li><a href="#basics">Basics</a></li>']
    for tag, found in groups.items():
        links = "".join(
            f'<li><a href="#{escape(each.id)}">{escape(each.id)}</a></li>' for each in found
        )
        parts.append(f'<li><a href="#tag-{escape(tag)}">{escape(tag)}</a><ul>{links}</ul></li>')
    return "".join([*parts, '<li><a href="#schemas">Schemas</a></li></ul>'])


def _basics(document: Mapping[str, Any]) -> str:
    shown = "".join(
        f"<dt>{escape(name)}</dt><dd>{prose(said)}</dd>" for name, said in _BASICS.items()
    )
    problem = document["components"]["schemas"]["Problem"]
    example = {
        name: field["examples"][0]
        for name, field in problem["properties"].items()
        if name != "job_id"
    }
    return (
        f'<section id="basics"><h2>Basics</h2><dl>{shown}</dl>'
        "<h3>Errors</h3><p>Every refusal has one shape, that of RFC 9457: <code>code</code> is for "
        "programs, <code>detail</code> for people, <code>errors</code> says where in the request. "
        "A duplicate names the job that is in the way as <code>job_id</code>.</p>"
        f"{block(pretty(example), 'application/problem+json')}</section>"
    )


def _group(document: Mapping[str, Any], tag: str, found: list[Operation], *, base: str) -> str:
    said = next((each["description"] for each in document["tags"] if each["name"] == tag), "")
    shown = "".join(show_operation(operation, base) for operation in found)
    return (
        f'<section class="group" id="tag-{escape(tag)}"><h2>{escape(tag)}</h2>'
        f"<p>{prose(said)}</p>{shown}</section>"
    )


def _schemas(schemas: Mapping[str, Any]) -> str:
    shown = "".join(_schema(name, schema) for name, schema in sorted(schemas.items()))
    return f'<section id="schemas"><h2>Schemas</h2>{shown}</section>'


def _schema(name: str, schema: Mapping[str, Any]) -> str:
    words = f"<p>{choices(schema['enum'])}</p>" if "enum" in schema else ""
    return (
        f'<article class="schema" id="schema-{escape(name)}"><details><summary><code>{escape(name)}'
        f'</code></summary><div class="inside"><p>{prose(schema.get("description", ""))}</p>{words}'
        f"{fields(schema)}</div></details></article>"
    )
