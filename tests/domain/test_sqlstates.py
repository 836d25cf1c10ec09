"""Which errors of the database may go away by themselves."""

import pytest

from mainspring.domain.sqlstates import is_worth_retrying


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
