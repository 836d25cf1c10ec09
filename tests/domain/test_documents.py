"""JSON of the database: numbers that other programs cannot hold are still read."""

from decimal import Decimal

import pytest

from mainspring.domain.documents import read


@pytest.mark.parametrize("number", [0, -1, 2**53 + 1, -(2**63), 2**64 - 1])
def test_a_whole_number_of_64_bits_stays_one(number):
    assert read(f'{{"n": {number}}}') == {"n": number}
    assert isinstance(read(str(number)), int)


@pytest.mark.parametrize("text", [str(2**64), str(-(2**63) - 1), "1" * 21, "-" + "9" * 50_000])
def test_a_larger_one_is_a_decimal(text):
    assert read(text) == Decimal(text)
    assert isinstance(read(text), Decimal)


def test_anything_else_is_as_python_reads_it():
    text = '{"a": [1.5, true, null, "x"]}'

    assert read(text) == {"a": [1.5, True, None, "x"]}
