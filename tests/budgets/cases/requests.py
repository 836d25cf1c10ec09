"""Requests, pages, cursors and filters."""

from collections.abc import Callable

from mainspring.api.responses import write_cursor
from tests.budgets.bench import Bench, Refusal
from tests.budgets.cases.shared import MIB, Case, Send, post, python, text


def get(path: Callable[[int], str]) -> Send:
    return lambda bench, count: bench.rest("GET", path(count))


def filtered(name: str) -> Send:
    return get(lambda count: f"/jobs?{name}={text(count)}")


def cursor(bench: Bench, count: int) -> Refusal | None:
    """One that a list could have given, with so many characters."""
    place = write_cursor("x" * (count * 3 // 4 - 2))
    return bench.rest("GET", f"/definitions?cursor={place.ljust(count, 'x')[:count]}")


def deep_request(levels: int) -> bytes:
    lists = levels - 2
    return b'{"definition": "work", "payload": {"a": %s%s}}' % (b"[" * lists, b"]" * lists)


def whole_request(bench: Bench, size: int) -> Refusal | None:
    """A request of exactly so many bytes. One of the limit is read and refused for its payload."""
    empty = len('{"definition":"work","payload":{"x":""}}')
    body = {"definition": "work", "payload": {"x": text(size - empty)}}
    refused = bench.rest("POST", "/jobs", body)
    return None if refused is not None and "payload" in refused.text else refused


CASES: list[Case] = [
    Case("cursor", "REST", 1000, cursor, "422", "cursor", most=50_000),
    *(
        Case(
            "filter: text (queue, definition, tag, error, creator)",
            f"REST, {name}",
            500,
            filtered(name),
            "422",
            "500",
        )
        for name in ("queue", "definition", "tag", "error", "created_by")
    ),
    Case(
        "filter: text (queue, definition, tag, error, creator)",
        "Python",
        500,
        python(lambda bench, count: bench.app.jobs.list(queue=text(count))),
        "invalid_option",
        "500",
    ),
    Case("page: `limit`", "REST", 1000, get(lambda count: f"/jobs?limit={count}"), "422", "1000"),
    Case(
        "request: nesting of its body",
        "REST",
        200,
        # Two levels are the body and the payload.
        post("/jobs", lambda _, levels: deep_request(levels)),
        "422",
        "200",
        most=20_000,
    ),
    Case(
        "request: size",
        "REST",
        8 * MIB,
        whole_request,
        "413",
        "8,388,608",
        most=16 * MIB,
    ),
]
