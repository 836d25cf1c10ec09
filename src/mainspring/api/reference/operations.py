"""Operations as HTML: what they take, what they answer, and how to call them."""

import shlex
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson

from mainspring.api.reference.schemas import (
    block,
    bounds_of,
    meaning,
    name_of,
    pretty,
    prose,
    table,
    type_of,
)

# Headers that everyone may send, but nobody needs in an example.
_SELDOM = ("tenant", "Last-Event-ID", "If-Match", "cursor")


class Operation(NamedTuple):
    """One operation of the document."""

    method: str
    path: str
    facts: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.facts["operationId"])

    @property
    def tag(self) -> str:
        return str(self.facts["tags"][0])

    @property
    def needs_token(self) -> bool:
        return self.facts.get("security") != []

    @property
    def parameters(self) -> list[Mapping[str, Any]]:
        return list(self.facts.get("parameters", ()))

    @property
    def body(self) -> Mapping[str, Any] | None:
        found = self.facts.get("requestBody", {}).get("content", {})
        return next(iter(found.values()), None)


def operations_of(document: Mapping[str, Any]) -> Iterator[Operation]:
    for path, methods in document["paths"].items():
        for method, facts in methods.items():
            yield Operation(method, path, facts)


def show_operation(operation: Operation, base: str) -> str:
    name = escape(operation.id)
    return (
        f'<article class="operation" id="{name}"><details><summary>{_title(operation)}</summary>'
        f'<div class="inside"><p>{prose(operation.facts["description"])}</p>'
        f"{block(curl(operation, base), 'curl')}"
        f"{_parameters(operation)}{_body(operation)}{_answers(operation)}"
        f"</div></details></article>"
    )


def _title(operation: Operation) -> str:
    path = escape(operation.path).replace("/", "/<wbr>")
    said = operation.facts["description"].partition(".")[0].partition(";")[0]
    return (
        f'<span class="method {operation.method}">{operation.method.upper()}</span> '
        f'<code class="path">{path}</code> '
        f'<span class="said">{prose(said)}</span> <code class="id">{escape(operation.id)}</code>'
    )


def _parameters(operation: Operation) -> str:
    rows = [
        (
            f"<code>{escape(each['name'])}</code>"
            + (' <span class="required">required</span>' if each.get("required") else ""),
            escape(each["in"]),
            type_of(each["schema"]),
            meaning(each.get("description", ""), bounds_of(each["schema"])),
        )
        for each in operation.parameters
    ]
    return "<h4>Parameters</h4>" + table(("Name", "In", "Type", "Meaning"), rows) if rows else ""


def _body(operation: Operation) -> str:
    if operation.body is None:
        return ""
    shown = type_of(operation.body["schema"])
    example = pretty(operation.body["example"])
    return f"<h4>Body</h4><p>{shown}, as JSON</p>{block(example, 'Example body')}"


def _answers(operation: Operation) -> str:
    answers = operation.facts["responses"]
    rows = [
        (
            f'<code class="status s{status[0]}">{status}</code>',
            prose(answer["description"]) + _headers(answer),
            _schema(answer),
        )
        for status, answer in sorted(answers.items())
    ]
    shown = table(("Status", "Meaning", "Body"), rows)
    return f"<h4>Answers</h4>{shown}{_example(answers)}"


def _example(answers: Mapping[str, Any]) -> str:
    """What success looks like."""
    for status, answer in sorted(answers.items(), reverse=True):
        for content in answer.get("content", {}).values() if status < "300" else ():
            return block(pretty(content["example"]), f"Example answer, {status}")
    return ""


def _headers(answer: Mapping[str, Any]) -> str:
    shown = [
        f"<code>{escape(name)}</code>: {prose(header['description'])}"
        for name, header in answer.get("headers", {}).items()
    ]
    return "".join(f'<div class="bounds">{each}</div>' for each in shown)


def _schema(answer: Mapping[str, Any]) -> str:
    for kind, content in answer.get("content", {}).items():
        shown = type_of(content["schema"])
        return shown if name_of(content["schema"]) else escape(kind)
    return "none"


def curl(operation: Operation, base: str) -> str:
    """A command that calls the operation with its examples."""
    path, query = operation.path, []
    headers = ["Authorization: Bearer $TOKEN"] if operation.needs_token else []
    for each in operation.parameters:
        name, example = each["name"], each.get("example")
        if each["in"] == "path":
            path = path.replace(f"{{{name}}}", quote(str(example), safe=""))
        elif name in _SELDOM:
            continue
        elif each["in"] == "header":
            headers.append(f"{name}: {example}")
        elif each.get("required") or _is_telling(each):
            values = example if isinstance(example, list) else [example]
            query += [f"{name}={quote(_text(value), safe='*')}" for value in values]
    target = base + path + (f"?{'&'.join(query)}" if query else "")
    parts = ["curl"]
    if operation.method not in ("get", "post") or operation.body is None:
        parts += [] if operation.method == "get" else ["-X", operation.method.upper()]
    lines = [" ".join([*parts, _quoted(target)])]
    lines += [f"  -H {_header(each)}" for each in headers]
    if operation.body is not None:
        lines.append(f"  -d {shlex.quote(orjson.dumps(operation.body['example']).decode())}")
    return " \\\n".join(lines)


def _is_telling(parameter: Mapping[str, Any]) -> bool:
    """The filters that one tries first."""
    return parameter["name"] in ("state", "limit", "outcome", "dry_run")


def _header(text: str) -> str:
    """In double quotes, so that the shell puts the token in."""
    return '"' + text.replace('"', '\\"') + '"'


def _quoted(url: str) -> str:
    return shlex.quote(url)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
