"""The OpenAPI document of the API."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import orjson
from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from mainspring.api import errors
from mainspring.api.models.base import Page
from mainspring.api.openapi import health
from mainspring.api.openapi.examples import Examples
from mainspring.api.openapi.fields import describe_fields
from mainspring.api.openapi.operations import describe_operations

# The groups of operations, in the order in which a reader needs them.
TAGS: Mapping[str, str] = MappingProxyType(
    {
        "jobs": "Enqueue jobs, look at them, and cancel, retry or delete them.",
        "streams": "Server-sent events: a job, a list of jobs or the summary, as they change.",
        "definitions": "What can be run: SQL functions, commands, Python handlers.",
        "schedules": "When definitions are enqueued, and what became of each slot.",
        "events": "Something that happened.",
        "triggers": "Rules that turn events into jobs.",
        "flows": "Jobs that wait for each other, enqueued together.",
        "approvals": "Jobs that wait for a decision.",
        "errors": "What fails, grouped by error.",
        "limits": "How many jobs run at once, and how often they start.",
        "retention": "How long things are kept.",
        "queues": "Live jobs by queue.",
        "processes": "Workers, schedulers and servers, and what they do together.",
        "workers": "The processes that run jobs.",
        "work": "For workers in any language: claim jobs under a lease and report on them.",
        "tenants": "Owners of jobs and schedules.",
        "people": "Who may log in.",
        "tokens": "What programs authenticate with.",
        "sessions": "Who is logged in.",
        "figures": "How much was enqueued, started and ended, and how long it took.",
        "audit": "Who changed what.",
        "doctor": "What is wrong with the database, for operators.",
        "me": "The caller of a request.",
        "health": "Whether the server works, for load balancers and monitoring.",
    }
)
# Where the name of a model without its ending would be taken, or say too little.
_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "AuditModel": "AuditEntry",
        "BulkModel": "BulkResult",
        "FilterIn": "Filter",
        "LoginModel": "LoginLink",
        "StateModel": "ChangedJob",
    }
)
_PAGE_SAID = " ".join((Page.__doc__ or "").split())
_PAGE = re.compile(r"Page_(\w+?)(?:Model)?_$")


def make_document(app: FastAPI) -> dict[str, Any]:
    """The document of an application."""
    document = get_openapi(
        title=app.title,
        version=app.version,
        description=app.description,
        routes=app.routes,
        tags=[{"name": name, "description": said} for name, said in TAGS.items()],
    )
    document = _renamed(document)
    schemas = document["components"]["schemas"]
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    made = errors.Problem.model_json_schema(ref_template="#/components/schemas/{model}")
    schemas.update(made.pop("$defs"))
    schemas["Problem"] = made
    describe_fields(schemas)
    examples = Examples(schemas)
    examples.fill()
    document["paths"][health.PATH] = {"get": health.operation()}
    describe_operations(document["paths"], examples)
    document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    document["security"] = [{"token": []}]
    return document


def _renamed(document: dict[str, Any]) -> dict[str, Any]:
    """With the names of schemas as a reader would say them: Job for JobModel, and JobPage."""
    known = document["components"]["schemas"]
    names = {name: _name_of(name) for name in known}
    text = orjson.dumps(document).decode()
    for name, shown in names.items():
        text = text.replace(f'"#/components/schemas/{name}"', f'"#/components/schemas/\0{shown}"')
    renamed: dict[str, Any] = orjson.loads(text.replace("\\u0000", "").replace("\0", ""))
    components = renamed["components"]
    components["schemas"] = {
        names[name]: {"description": _PAGE_SAID, **schema, "title": names[name]}
        if _PAGE.match(name)
        else {**schema, "title": names[name]}
        for name, schema in components["schemas"].items()
    }
    return renamed


def _name_of(name: str) -> str:
    page = _PAGE.match(name)
    if page is not None:
        return f"{_name_of(page[1] + 'Model')}Page"
    return _NAMES.get(name) or name.removesuffix("Model")
