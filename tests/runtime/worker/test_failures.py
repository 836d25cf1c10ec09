"""What a handler raised, in words: bounded, and quick to make."""

import traceback
from collections.abc import Callable

import pytest

from mainspring.domain.jobs.outcomes import AttemptFailed
from mainspring.domain.secrets.redaction import Redactor
from mainspring.runtime.worker.failures import (
    FIRST_FRAMES,
    LAST_FRAMES,
    MAX_MESSAGE_LENGTH,
    describe,
)


class Odd(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("never")


def noted() -> BaseException:
    error = ValueError("wrong")
    error.add_note("and why")
    return error


def raised(error: BaseException, depth: int = 0) -> BaseException:
    def fail(left: int) -> None:
        if left:
            fail(left - 1)
        raise error

    try:
        fail(depth)
    except BaseException as caught:  # noqa: BLE001
        return caught
    raise AssertionError


@pytest.mark.parametrize(
    "make",
    [
        lambda: ValueError("wrong"),
        ValueError,
        lambda: KeyError("a\nb"),
        lambda: OSError(2, "no such file", "x"),
        lambda: AssertionError("in\nlines"),
        lambda: SyntaxError("bad", ("f.py", 1, 2, "a b")),
        noted,
        Odd,
    ],
    ids=["plain", "empty", "key", "os", "lines", "syntax", "noted", "odd"],
)
def test_the_exception_is_worded_as_python_does(make: Callable[[], BaseException]):
    error = make()

    assert describe(error) == "".join(traceback.format_exception_only(error)).strip()


def test_the_place_comes_after_it():
    text = describe(raised(ValueError("wrong")))

    message, _, frames = text.partition("\n\n")
    assert message == "ValueError: wrong"
    assert frames.splitlines()[-2].startswith(f'  File "{__file__}", line ')
    assert frames.splitlines()[-2].endswith(", in fail")
    assert frames.splitlines()[-1] == "    raise error"


def test_an_attempt_that_failed_in_words_is_left_as_it_is():
    assert describe(AttemptFailed("no key")) == "no key"


@pytest.mark.parametrize("extra", [0, 1, 500])
def test_a_traceback_has_so_many_frames_at_most(extra):
    most = FIRST_FRAMES + LAST_FRAMES
    text = describe(raised(ValueError("deep"), most - 2 + extra))

    assert text.count("  File ") == most
    assert text.count("frames omitted") == bool(extra)
    assert not extra or f"... {extra} frames omitted ..." in text


@pytest.mark.parametrize("times", [1, 100, 3000])
def test_an_endless_message_is_cut(times):
    size = MAX_MESSAGE_LENGTH * times + 1 - len("ValueError: ")
    text = describe(raised(ValueError("x" * size)), Redactor(["correct-horse"]))

    assert len(text) < MAX_MESSAGE_LENGTH + 2000
    assert f"... {MAX_MESSAGE_LENGTH * (times - 1) + 1} characters omitted ..." in text


def test_a_secret_in_the_middle_of_which_a_message_is_cut_is_not_shown():
    before = "x" * (MAX_MESSAGE_LENGTH - len("ValueError: ") - 6)
    redactor = Redactor(["correct-horse"])

    text = describe(raised(ValueError(before + "correct-horse" * 9)), redactor)

    assert "correc" not in text


def test_a_recursion_is_bounded_too():
    def forever() -> None:
        forever()

    try:
        forever()
    except RecursionError as error:
        text = describe(error)

    assert text.startswith("RecursionError: maximum recursion depth exceeded")
    assert text.count("  File ") == FIRST_FRAMES + LAST_FRAMES
