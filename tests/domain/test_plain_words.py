"""What pydantic says of a wrong value, in plain words."""

import pytest
from pydantic import BaseModel, Field, ValidationError, field_validator

from mainspring.domain.plain_words import plain


class Wrong(BaseModel):
    """A field of each kind that interfaces have."""

    whole: int = 0
    number: float = 0.0
    switch: bool = False
    several: list[str] = Field(default_factory=list)
    payload: dict[str, int] = Field(default_factory=dict)
    few: int = Field(1, ge=1, le=5)
    checked: str = ""

    @field_validator("checked")
    @classmethod
    def _refuse(cls, value: str) -> str:
        raise ValueError(f"{value!r} is not one of 'a', 'b'")


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("whole", "abc", "must be a whole number"),
        ("whole", 1.5, "must be a whole number"),
        ("number", "abc", "must be a number"),
        ("switch", "maybe", "must be true or false"),
        ("several", "abc", "must be a JSON list"),
        ("payload", "abc", "must be a JSON object"),
        ("few", 0, "must be 1 or more"),
        ("few", 6, "must be 5 or less"),
        ("checked", "c", "'c' is not one of 'a', 'b'"),
    ],
)
def test_a_wrong_value_is_described_in_plain_words(field, value, said):
    with pytest.raises(ValidationError) as refused:
        Wrong(**{field: value})

    assert plain(refused.value.errors()[0]["msg"]) == said
