"""Definitions: what can be registered."""

from dataclasses import replace
from datetime import timedelta

import pytest

from mainspring.domain.definitions import Definition, Handler
from mainspring.domain.errors import InvalidDefinition, InvalidOption
from mainspring.domain.types import ExecutionMode

TICK = timedelta(microseconds=1)


@pytest.mark.parametrize("key", ["a", "_", "send_mail", "Mail.send:v2-beta", "a" * 200])
def test_a_key_that_can_be_typed_anywhere_is_taken(key):
    assert Definition(key).key == key


@pytest.mark.parametrize("key", ["", "1st", "-a", "a b", "a/b", "a\n", "é", "a" * 201])
def test_any_other_key_is_refused(key):
    with pytest.raises(InvalidDefinition, match="the definition key"):
        Definition(key)


@pytest.mark.parametrize(("least", "most"), [(1, 1000)])
def test_attempts_have_their_range(least, most):
    for number in (least, most):
        assert Definition("a", max_attempts=number).max_attempts == number
    for number in (least - 1, most + 1):
        with pytest.raises(InvalidDefinition, match=f"from 1 to 1000, not {number}"):
            Definition("a", max_attempts=number)


def test_a_timeout_is_more_than_zero():
    assert Definition("a", timeout=TICK).timeout == TICK
    for wrong in (timedelta(0), 30):
        with pytest.raises(InvalidDefinition, match="must be a timedelta greater than zero"):
            Definition("a", timeout=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"priority": 1001}, {"priority": -1}, {"queue": ""}])
def test_queue_and_priority_follow_the_rules_of_an_enqueue(wrong):
    with pytest.raises(InvalidOption, match=next(iter(wrong))):
        Definition("a", **wrong)


def test_only_an_async_handler_without_context_is_simple():
    simple = Handler(Definition("a"), print, ExecutionMode.ASYNC)

    assert simple.is_simple
    assert not replace(simple, wants_context=True).is_simple
    assert not replace(simple, mode=ExecutionMode.THREAD).is_simple
