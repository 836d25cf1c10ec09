import pytest

from mainspring.domain.jobs.outcomes import AttemptFailed
from mainspring.domain.sql_functions import read_answer


def test_the_answer_of_a_function_that_succeeded_is_kept_whole():
    answer = {"success": True, "message": "3 rows", "details": {"rows": 3}, "more": 1}

    assert read_answer(answer) == answer


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (None, "the function returned null"),
        ([1], "the function returned an array, [1]"),
        ("fine", 'the function returned a string, "fine"'),
        (3, "the function returned a number, 3"),
        (True, "the function returned a boolean, true"),
        ({}, "the function returned no 'success': {}"),
        ({"ok": True}, "the function returned no 'success': {\"ok\": true}"),
        ({"success": "yes"}, "the function returned \"yes\" as 'success'"),
        ({"success": None}, "the function returned null as 'success'"),
    ],
)
def test_an_answer_of_another_shape_is_a_failure_that_shows_it(answer, said):
    with pytest.raises(AttemptFailed) as caught:
        read_answer(answer)

    assert str(caught.value).startswith(said)
    assert 'a function must return {"success": true or false' in str(caught.value)


def test_a_long_answer_is_shown_in_part():
    with pytest.raises(AttemptFailed) as caught:
        read_answer(["x" * 10_000])

    assert len(str(caught.value)) < 700


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"success": False, "message": "locked"}, "the function returned success: false; locked"),
        ({"success": False}, "the function returned success: false; no message was given"),
        (
            {"success": False, "message": 3},
            "the function returned success: false; no message was given",
        ),
        (
            {"success": False, "message": "no", "details": {"row": 7}},
            'the function returned success: false; no\n{"row": 7}',
        ),
    ],
)
def test_a_function_that_says_no_has_failed_in_its_own_words(answer, said):
    with pytest.raises(AttemptFailed) as caught:
        read_answer(answer)

    assert str(caught.value) == said
