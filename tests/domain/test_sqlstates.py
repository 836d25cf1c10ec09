"""Which errors of the database may go away by themselves, and which are the fault of a row."""

import pytest

from mainspring.domain.sqlstates import is_of_a_row, is_of_the_statement, is_worth_retrying


@pytest.mark.parametrize(
    "sqlstate",
    [
        *(None, "08006", "08P01", "40001", "40P01", "53100", "53300", "57P01", "57P03", "58030"),
        *("55P03", "25006"),
    ],
)
def test_what_concerns_the_server_or_others_is_worth_retrying(sqlstate):
    assert is_worth_retrying(sqlstate)


@pytest.mark.parametrize("sqlstate", ["57014", "22003", "23514", "42P01", "54000", "P0001"])
def test_what_concerns_the_statement_or_a_row_is_not(sqlstate):
    assert not is_worth_retrying(sqlstate)


@pytest.mark.parametrize("sqlstate", ["42501", "42703", "42883", "42P01", "0A000", "3F000"])
def test_what_any_rows_would_meet_is_no_fault_of_one(sqlstate):
    assert is_of_the_statement(sqlstate)
    assert not is_of_a_row(sqlstate)


@pytest.mark.parametrize("sqlstate", ["22003", "23514", "54000", "57014", "MS020", "P0001"])
def test_what_a_row_brings_is_its_fault(sqlstate):
    assert is_of_a_row(sqlstate)
    assert not is_of_the_statement(sqlstate)


@pytest.mark.parametrize("sqlstate", [None, "08006", "25006", "40P01"])
def test_what_may_pass_is_no_fault_of_the_statement_either(sqlstate):
    assert not is_of_a_row(sqlstate)
    assert not is_of_the_statement(sqlstate)


def test_a_locked_row_can_be_left_out():
    assert is_of_a_row("55P03")
