"""Which errors of the database are worth another try."""

import pytest

from mainspring.domain.sqlstates import is_worth_retrying


@pytest.mark.parametrize("sqlstate", [None, "08006", "57P01", "40001", "40P01", "53200"])
def test_what_passes_is_worth_retrying(sqlstate):
    assert is_worth_retrying(sqlstate)


@pytest.mark.parametrize("sqlstate", ["57014", "23505", "22P05", "42501", "54000", "P0001"])
def test_what_stays_is_not(sqlstate):
    assert not is_worth_retrying(sqlstate)
