"""The bytes of a claim."""

from mainspring.domain.claiming.budgets import ClaimBudget

TEXT = "x" * 500  # With what is said besides, 1,000 bytes.


def test_jobs_are_admitted_up_to_the_budget():
    budget = ClaimBudget(2000)

    assert [budget.admits(TEXT), budget.admits(TEXT), budget.admits(TEXT)] == [True, True, False]


def test_one_job_always_fits_and_then_no_other():
    budget = ClaimBudget(999)

    assert [budget.admits(TEXT), budget.admits(None)] == [True, False]


def test_a_small_job_does_not_overtake_one_that_did_not_fit():
    budget = ClaimBudget(2000)

    admitted = [budget.admits(text) for text in (TEXT, TEXT * 3, "")]

    assert (admitted, budget.is_used_up) == ([True, False, False], True)


def test_letters_count_as_the_bytes_they_are_sent_as():
    budget = ClaimBudget(2000)

    assert [budget.admits("ü" * 500), budget.admits(TEXT)] == [True, False]


def test_steps_grow_and_are_no_larger_than_wanted():
    budget = ClaimBudget()

    assert [budget.step(1000) for _ in range(4)] == [16, 32, 64, 64]
    assert budget.step(3) == 3
