"""Errors: one tree, drawn whole, each with a code and a sentence."""

import importlib
import inspect
import pkgutil
import re
from datetime import UTC, datetime

import pytest

from mainspring.domain import errors
from mainspring.domain.errors import (
    InvalidDefinition,
    MainspringError,
    UnknownDefinition,
    access,
    client,
    definitions,
    secrets,
    slots,
)
from mainspring.domain.errors.database import all_errors
from mainspring.domain.types import EventId, JobId, JobState

# Those that nothing here imports by name are known once their modules are.
for _module in pkgutil.iter_modules(errors.__path__):
    importlib.import_module(f"{errors.__name__}.{_module.name}")

DRAWN = re.compile(r"^([│ ]*(?:[├└]── )?)([A-Z]\w+)", re.MULTILINE)
SAMPLES = {
    "kind": "audit",
    "status": 404,
    "said": "job_not_found",
    "detail": "there is no job 7",
    "worker_id": 7,
    "login": "ada",
    "statements": ("create schema mainspring authorization ada",),
    "slot_at": datetime(2026, 11, 17, 6, tzinfo=UTC),
    "size": 2_000_000,
    "limit": 1_048_576,
    "message": "send: cron hour is wrong",
    "option": "priority",
    "problem": "is wrong",
    "field": "cron hour",
    "key": "send",
    "key_id": "1f0c9a2e",
    "name": "nightly",
    "tenant_id": "acme",
    "tenants": ("acme", "bell"),
    "session_id": 7,
    "dedupe_key": "k",
    "idempotency_key": "k",
    "job_id": JobId(7),
    "event_id": EventId(7),
    "state": JobState.FAILED,
    "target": JobState.RUNNING,
    "error": "boom",
    "version": "14.2",
    "found": 1,
    "expected": 2,
    "what": "migration 0002 later",
    "tries": 10,
    "blockers": ("pid 7",),
    "actor": "eve",
    "approvers": ("ann", "bob"),
    "flow_id": 7,
    "role": "civic_jobs",
    "who": "acme",
    "seconds": 60.0,
    "reason": "it is not permitted to log in",
}


def drawn_parents() -> dict[str, str]:
    """Each error of the drawing and the one it hangs on."""
    path: list[str] = []
    parents = {}
    for indent, name in DRAWN.findall(errors.__doc__ or ""):
        depth = len(indent) // 4
        path[depth:] = [name]
        if depth:
            parents[name] = path[depth - 1]
    return parents


def make(kind: type[MainspringError]) -> MainspringError:
    if "__init__" not in vars(kind):
        return kind("a sentence")
    names = [name for name in inspect.signature(kind).parameters if name in SAMPLES]
    return kind(**{name: SAMPLES[name] for name in names})


def test_the_drawing_shows_every_error_on_its_parent():
    real = {kind.__name__: kind.__bases__[0].__name__ for kind in all_errors()}

    assert drawn_parents() == {n: p for n, p in real.items() if n != "MainspringError"}


def test_every_code_is_one_of_a_kind():
    codes = [kind.code for kind in all_errors()]

    assert len(codes) == len(set(codes)) > 20
    parts = (access.Forbidden, client.ApiError, secrets.UnreadableSecret)
    for known in (*parts, definitions.InactiveDefinition, slots.SlotClaimed):
        assert known.code in codes
    assert all(re.fullmatch(r"[a-z_]+", code) for code in codes)


@pytest.mark.parametrize("kind", list(all_errors()), ids=lambda kind: kind.__name__)
def test_every_error_says_its_facts_in_a_sentence_and_in_fields(kind):
    error = make(kind)

    assert len(str(error).split()) > 1
    for name, value in vars(error).items():
        assert value is None or value == SAMPLES[name]


@pytest.mark.parametrize(
    ("message", "field", "problem"),
    [
        ("send: timeout must be short", "timeout", "must be short"),
        ("send: argv has: nothing", "argv", "has: nothing"),
        ("a:b: is declared in code", None, "is declared in code"),
        ("the definition key 'a b' must not: so", "key", "the definition key 'a b' must not: so"),
    ],
)
def test_the_problem_of_a_definition_is_without_the_definition_and_the_field(
    message, field, problem
):
    assert InvalidDefinition(message, field=field).problem == problem


def test_an_unknown_definition_suggests_only_what_it_was_given():
    assert str(UnknownDefinition("sned", "send")).endswith("; did you mean 'send'?")
    assert "did you mean" not in str(UnknownDefinition("sned"))
