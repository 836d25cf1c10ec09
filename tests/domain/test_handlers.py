"""Handlers: what a function's signature says of the payload."""

import json
from typing import Any

import pytest

from mainspring.domain.errors import InvalidDefinition, InvalidPayload
from mainspring.domain.handlers import choose_mode, read_signature
from mainspring.domain.types import ExecutionMode


async def send(user_id: int, *, subject: str = "Hello", ctx: Any = None) -> None: ...


def count(ctx: Any, number: int) -> None: ...


def take_anything(name: str, **more: Any) -> None: ...


def test_the_context_is_no_argument():
    signature = read_signature("send", send)

    assert signature.names == {"user_id", "subject"}
    assert signature.required == {"user_id"}
    assert signature.wants_context


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [((), {"user_id": 7, "subject": "Hi"}), ((7,), {"subject": "Hi"})],
)
def test_arguments_become_the_payload_by_name(args, kwargs):
    payload = read_signature("send", send).payload_of(args, kwargs)

    assert payload == {"user_id": 7, "subject": "Hi"}


def test_a_default_is_left_to_the_handler():
    assert read_signature("send", send).payload_of((7,), {}) == {"user_id": 7}


def test_a_leading_context_takes_no_place():
    assert read_signature("count", count).payload_of((7,), {}) == {"number": 7}


def test_extra_keywords_are_taken_where_the_handler_takes_them():
    signature = read_signature("take_anything", take_anything)

    assert signature.payload_of((), {"name": "a", "b": 1}) == {"name": "a", "b": 1}
    assert signature.payload_of(("a",), {"b": 1}) == {"name": "a", "b": 1}


@pytest.mark.parametrize(
    ("args", "kwargs", "problem"),
    [
        ((), {}, "missing a required"),
        ((), {"user": 7}, "missing a required"),
        ((), {"user_id": 7, "cc": "x"}, "unexpected keyword argument 'cc'"),
        ((7, "Hi"), {}, "too many positional arguments"),
        ((7,), {"user_id": 7}, "multiple values"),
        ((), {"user_id": 7, "ctx": None}, "unexpected keyword argument 'ctx'"),
    ],
)
def test_arguments_the_handler_would_refuse_are_refused(args, kwargs, problem):
    with pytest.raises(InvalidPayload, match=f"do not match the handler: .*{problem}"):
        read_signature("send", send).payload_of(args, kwargs)


@pytest.mark.parametrize("function", [lambda *numbers: None, lambda a, /: None])
def test_a_parameter_without_a_name_is_refused(function):
    with pytest.raises(InvalidDefinition, match="every parameter needs a name"):
        read_signature("f", function)


def test_the_example_has_a_value_of_the_right_type_for_what_is_required():
    def function(
        name: str,
        age: "int",
        size: float,
        is_new: bool,
        tags: list[str],
        facts: dict[str, int],
        more: int = 1,
    ) -> None: ...

    example = json.loads(read_signature("f", function).example())

    types = {"name": str, "age": int, "size": float, "is_new": bool, "tags": list, "facts": dict}
    assert {name: type(value) for name, value in example.items()} == types


def test_async_functions_run_in_the_loop_and_plain_ones_in_a_thread():
    assert choose_mode("send", send, None) is ExecutionMode.ASYNC
    assert choose_mode("count", count, None) is ExecutionMode.THREAD
    assert choose_mode("count", count, "process") is ExecutionMode.PROCESS


@pytest.mark.parametrize(
    ("function", "asked", "problem"),
    [
        (send, "thread", "an async function cannot run with mode='thread'"),
        (send, "process", "an async function cannot run with mode='process'"),
        (count, "async", "a regular function cannot run with mode='async'"),
        (count, "fibre", "mode must be 'async', 'thread' or 'process', not 'fibre'"),
    ],
)
def test_a_mode_that_does_not_suit_the_function_is_refused(function, asked, problem):
    with pytest.raises(InvalidDefinition, match=problem):
        choose_mode("key", function, asked)


def test_a_function_for_a_process_must_be_importable():
    def inner() -> None: ...

    with pytest.raises(InvalidDefinition, match="define it at module level"):
        choose_mode("inner", inner, "process")
