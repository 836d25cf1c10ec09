"""What `@app.job` and `register_worker` refuse, and what they say to write instead."""

import functools
import re
from datetime import timedelta
from typing import Any

import pytest

from mainspring import Backoff, Context, Mainspring
from mainspring.domain.errors import InputError, InvalidDefinition


def work(number: int = 1) -> int:
    return number


class Jobs:
    def run(self, number: int) -> int:
        return number

    def ingest(self, job_data: dict[str, Any], job_id: str, queue: Any) -> str:
        return job_id

    @classmethod
    def of_class(cls, number: int) -> int:
        return number


@pytest.fixture(scope="module")
def app() -> Mainspring:
    """Registering needs no database."""
    return Mainspring("postgresql://nowhere/nothing")


WRONG: list[dict[str, Any]] = [
    {"backoff": 5},
    {"backoff": timedelta(seconds=5)},
    {"timeout": 30},
    {"retention": 7},
    {"priority": "high"},
    {"queue": 5},
    {"max_attempts": "3"},
    {"max_attempts": True},
    {"description": 5},
    {"tags": 5},
    {"tags": "a"},
    {"arg_schema": [1]},
    {"concurrency": "2"},
    {"rate": 5},
    {"delivery": "exactly_once"},
    {"delivery": 1},
    {"limit": 5},
    {"approvals_needed": "1"},
    {"approvers": 5, "approvals_needed": 1},
    {"approval_expiry": 5, "approvals_needed": 1},
    {"key": 5},
    {"key": ""},
    {"mode": 5},
]


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_an_option_of_a_wrong_type_is_refused_by_name(app: Mainspring, options: dict[str, Any]):
    name, value = next(iter(options.items()))

    with pytest.raises(InputError) as refused:
        app.job(**options)(work)
    said = str(refused.value)
    assert name in said
    assert "must be" in said or "must start" in said
    if name not in ("tags", "approvers", "arg_schema", "queue"):
        assert repr(value) in said


@pytest.mark.parametrize("tags", [5, "urgent"])
def test_tags_of_an_enqueue_are_a_list(app: Mainspring, tags: Any):
    with pytest.raises(InputError, match=f"tags must be a list of strings, not {tags!r}"):
        app.job(key="tagged")(work).options(tags=tags)


def test_a_factor_that_is_no_number_is_refused():
    with pytest.raises(InputError, match="backoff factor must be a number, not '2'"):
        Backoff(factor="2")  # type: ignore[arg-type]


def named_context(context: Context, number: int) -> None: ...


def optional_context(number: int, context: Context | None = None) -> None: ...


def postponed_context(context: "Context", number: int) -> None: ...


@pytest.mark.parametrize("function", [named_context, optional_context, postponed_context])
def test_a_context_of_another_name_is_refused(app: Mainspring, function: Any):
    problem = (
        f"{function.__name__}: the parameter 'context' is a Context, but the context is passed only"
        " to a parameter named ctx; rename it: ctx: Context"
    )
    with pytest.raises(InvalidDefinition, match=re.escape(problem)):
        app.job(function)


@pytest.mark.parametrize(
    ("handler", "problem"),
    [
        ("mail", "write @app.job(key='mail')"),
        (5, "a handler must be a function, not int 5; define a function that calls it"),
        (Jobs, "a handler must be a function, not the class Jobs"),
        (functools.partial(work, 5), "a handler must be a function, not partial"),
        (Jobs.__dict__["of_class"], "a classmethod cannot be a handler inside its class"),
        (Jobs.run, "run: Jobs.run is a method without its object; register that of an object, "),
        (Jobs.run, "an object, Jobs(...).run, or a function"),
    ],
)
def test_what_is_no_function_is_refused(app: Mainspring, handler: Any, problem: str):
    with pytest.raises(InvalidDefinition, match=re.escape(problem)):
        app.job(handler)


def test_the_method_of_an_object_is_a_handler(app: Mainspring):
    assert app.job(key="bound")(Jobs().run)(3) == 3
    app.register_worker("bound_worker", Jobs().ingest)


def too_few(job_data: dict[str, Any], job_id: str) -> None: ...


def too_many(job_data: dict[str, Any], job_id: str, queue: Any, more: int) -> None: ...


def by_name(*, job_data: dict[str, Any], job_id: str, queue: Any) -> None: ...


@pytest.mark.parametrize("function", [too_few, too_many, by_name])
def test_a_worker_with_other_parameters_is_refused(app: Mainspring, function: Any):
    problem = f"write def {function.__name__}(job_data, job_id, queue)"
    with pytest.raises(InvalidDefinition, match=re.escape(problem)):
        app.register_worker("ingestion", function)
    assert "ingestion" not in app.handlers


@pytest.mark.parametrize(
    ("key", "function", "problem"),
    [
        ("ingestion", Jobs.ingest, "Jobs.ingest is a method without its object; register that of"),
        ("ingestion", 5, "a handler must be a function, not int 5"),
        (work, "ingestion", "the definition key must be a string, not <function work"),
    ],
)
def test_a_worker_that_cannot_be_called_is_refused(
    app: Mainspring, key: Any, function: Any, problem: str
):
    with pytest.raises(InvalidDefinition, match=re.escape(problem)):
        app.register_worker(key, function)


def test_what_runs_at_most_once_has_one_attempt(app: Mainspring):
    once = app.job(key="once", delivery="at_most_once")(work)

    assert once.handler.definition.max_attempts == 1
    with pytest.raises(InvalidDefinition, match="twice: max_attempts must be 1 with delivery at_"):
        app.job(key="twice", delivery="at_most_once", max_attempts=2)(work)


def test_a_registered_worker_can_run_at_most_once(app: Mainspring):
    def ingest(job_data: dict[str, Any], job_id: str, queue: Any) -> None: ...

    app.register_worker("ingest_once", ingest, delivery="at_most_once")

    assert app.handlers["ingest_once"].definition.delivery == "at_most_once"
