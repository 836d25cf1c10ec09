"""What operations answer: which refusals, which headers, and with which examples."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from mainspring.api.openapi.examples import Examples

PROBLEM = "application/problem+json"
REFUSALS: Mapping[int, str] = MappingProxyType(
    {
        400: "The Host header names another server.",
        401: "The token is missing or invalid.",
        403: "The caller is not allowed to do this.",
        404: "Not found, or not in this tenant.",
        408: "The body took too long to arrive.",
        409: "The current state does not allow it.",
        412: "It was changed since the caller last read it.",
        413: "The request is too large.",
        422: "The request is invalid; `errors` says where.",
        429: "Too many requests.",
        500: "An internal error; the server's log says more.",
        503: "The database is unavailable, or there are too many connections.",
    }
)
OPEN_REFUSALS = frozenset({400, 429, 500, 503})
"""Those of an operation that needs no token and takes no parameters."""
_TEXT = MappingProxyType({"type": "string"})
_HEADERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "ETag": ("Tag of this state, for If-Match.", '"4f1c2b7d9e0a4f1c2b7d9e0a"'),
        "Idempotency-Replayed": ("`true` if this is the answer to an earlier request.", "true"),
        "Location": ("Path of the job.", "/api/v1/jobs/7"),
        "Retry-After": ("Seconds to wait before the next try.", "1"),
        "WWW-Authenticate": ("How to authenticate.", "Bearer"),
    }
)
_OF_REFUSAL = MappingProxyType({401: "WWW-Authenticate", 429: "Retry-After", 503: "Retry-After"})
# Examples of parameters, by name or as operation.name.
_PARAMETERS: Mapping[str, Any] = MappingProxyType(
    {
        "Idempotency-Key": "5f0c9d",
        "If-Match": '"4f1c2b7d9e0a4f1c2b7d9e0a"',
        "Last-Event-ID": "7.3.running",
        "action": ["update"],
        "actor": ["ann"],
        "after": "m",
        "before": "100",
        "created_after": "2026-01-01T00:00:00Z",
        "created_before": "2026-02-01T00:00:00Z",
        "created_by": ["ann"],
        "cursor": "MTIz",
        "definition": ["send_welcome"],
        "definition_version": "3",
        "dry_run": True,
        "error": ["timeout"],
        "error_key": ["5d41402abc4b"],
        "event": ["provider.folder_changed"],
        "event_id": "7",
        "flow_id": "7",
        "get_figures.by": ["definition"],
        "get_figures.from": "2026-01-31T00:00:00Z",
        "get_figures.points": False,
        "get_figures.step": "1h",
        "get_figures.to": "2026-02-01T00:00:00Z",
        "has_failed": True,
        "include": ["payload"],
        "is_active": True,
        "is_enabled": True,
        "is_handled": False,
        "is_new": True,
        "job_id": "7",
        "keep": 604800,
        "kind": ["sql"],
        "limit": 20,
        "name": "nightly",
        "noun": ["schedule"],
        "only": ["D13"],
        "outcome": ["failed"],
        "parent_id": "6",
        "person": ["ann"],
        "queue": ["mail"],
        "role": ["worker"],
        "schedule": ["nightly"],
        "since": "2026-01-01T00:00:00Z",
        "session_id": "7",
        "slot_at": "2026-01-31T12:00:00Z",
        "source": ["schedule"],
        "state": ["failed", "dead_letter"],
        "subject": ["nightly"],
        "tag": ["nightly"],
        "tenant": "acme",
        "trigger": ["resync"],
        "worker_id": "12",
        "list_approvals.after": "7",
        "list_events.name": ["provider.*"],
        "list_flows.name": ["nightly"],
        "list_processes.kind": ["scheduler"],
        "list_slots.before": "2026-01-31T12:00:00Z",
        "list_tokens.state": ["active"],
        "preview_retention.kind": "jobs",
        "preview_retention.state": "failed",
        "preview_schedule.after": "2026-01-31T12:00:00Z",
        "unset_retention.kind": "jobs",
        "unset_retention.state": "failed",
    }
)


def describe_operations(paths: Mapping[str, Any], examples: Examples) -> None:
    tagged = _tagged(paths)
    for operation in operations_of(paths):
        names = {each["name"] for each in operation.get("parameters", ())}
        _describe_parameters(operation)
        _describe_successes(operation, examples)
        _refuse(operation, names)
        _head(operation, names, tagged)
        _exemplify(operation, examples)


def operations_of(paths: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for methods in paths.values():
        yield from methods.values()


def _describe_parameters(operation: dict[str, Any]) -> None:
    for parameter in operation.get("parameters", ()):
        schema = parameter["schema"]
        schema.pop("title", None)
        # A parameter that may be left out cannot be null: there is no way to write it.
        kinds = [kind for kind in schema.pop("anyOf", []) if kind != {"type": "null"}]
        parameter["schema"] = {**kinds[0], **schema} if kinds else schema
        name = parameter["name"]
        own = f"{operation['operationId']}.{name}"
        if own in _PARAMETERS or name in _PARAMETERS:
            example = _PARAMETERS.get(own, _PARAMETERS.get(name))
            is_one = parameter["schema"].get("type") == "array" and not isinstance(example, list)
            parameter["example"] = [example] if is_one else example


def _refuse(operation: dict[str, Any], names: set[str]) -> None:
    """Declare the refusals that the operation can answer with."""
    content = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    for status, said in REFUSALS.items():
        if status == 412 and "If-Match" not in names:
            continue
        if status in (408, 413) and "requestBody" not in operation:
            continue
        if operation.get("security") == [] and status not in OPEN_REFUSALS:
            continue
        answer: dict[str, Any] = {"description": said, "content": content}
        if status in _OF_REFUSAL:
            answer["headers"] = _headers(_OF_REFUSAL[status])
        operation["responses"][str(status)] = answer


def _tagged(paths: Mapping[str, Any]) -> set[str]:
    """The schemas that are answered with an ETag: those of what is changed with If-Match."""
    found = set()
    for methods in paths.values():
        names = [
            parameter["name"]
            for operation in methods.values()
            for parameter in operation.get("parameters", ())
        ]
        if "If-Match" in names and "get" in methods:
            found.add(_schema_of(methods["get"]["responses"]["200"]))
    return found - {""}


def _head(operation: dict[str, Any], names: set[str], tagged: set[str]) -> None:
    """Declare the headers of what succeeds."""
    for status, answer in operation["responses"].items():
        if not status.startswith("2"):
            continue
        headers: dict[str, Any] = {}
        if _schema_of(answer) in tagged:
            headers |= _headers("ETag")
        if operation["operationId"] == "enqueue_job":
            headers |= _headers("Location")
        elif "Idempotency-Key" in names:
            headers |= _headers("Idempotency-Replayed")
        if headers:
            answer["headers"] = headers


def _schema_of(answer: Mapping[str, Any]) -> str:
    content = answer.get("content", {}).get("application/json", {})
    return str(content.get("schema", {}).get("$ref", ""))


def _describe_successes(operation: dict[str, Any], examples: Examples) -> None:
    """Say what the answer is: what its schema is, unless the route says more."""
    for status, answer in operation["responses"].items():
        if status == "204":
            answer["description"] = "Done; there is no body."
        elif answer["description"] == "Successful Response":
            answer["description"] = examples.description_of(_schema_of(answer))


def _headers(name: str) -> dict[str, Any]:
    description, example = _HEADERS[name]
    return {name: {"description": description, "schema": dict(_TEXT), "example": example}}


def _exemplify(operation: dict[str, Any], examples: Examples) -> None:
    """Give bodies their examples."""
    bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
    for body in bodies:
        for content in body.get("content", {}).values():
            if "schema" in content and "example" not in content:
                content["example"] = examples.of(content["schema"])
