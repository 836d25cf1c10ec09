"""Keys: read from a list, never shown."""

import pytest

from mainspring.domain.secrets.keys import read_keys, write_key

FIRST, SECOND = write_key(bytes(range(32))), write_key(bytes(range(1, 33)))


def test_keys_are_separated_by_commas():
    first, second = read_keys(f" {FIRST}, {SECOND},")

    assert first.id != second.id
    assert len(first.material) == len(second.material) == 64


def test_no_keys_are_no_keys():
    assert read_keys("") == ()


def test_a_key_does_not_show_itself():
    (key,) = read_keys(FIRST)

    assert repr(key) == f"Key(id='{key.id}')"
    assert key.id not in FIRST


@pytest.mark.parametrize(
    "wrong", ["x", "msk_", FIRST[:-1], f"{FIRST}A", FIRST.removeprefix("msk_"), f"{FIRST[:-1]}!"]
)
def test_what_is_no_key_is_refused_without_being_shown(wrong):
    with pytest.raises(ValueError, match="key number 2 is invalid") as caught:
        read_keys(f"{FIRST},{wrong}")

    assert wrong not in str(caught.value) or wrong == "x"


def test_the_same_key_twice_is_refused():
    with pytest.raises(ValueError, match="twice"):
        read_keys(f"{FIRST},{FIRST}")
