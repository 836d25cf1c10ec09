"""JSON Schemas of handlers that use pydantic: as lenient as pydantic, and secrets are marked."""

import subprocess
import sys
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import annotated_types
import pytest
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    RootModel,
    SecretStr,
    TypeAdapter,
    ValidationError,
    create_model,
    field_validator,
    model_validator,
)

from mainspring import Mainspring


class Token(BaseModel):
    value: SecretStr


class Order(BaseModel):
    id: int
    when: datetime
    price: Decimal = Decimal(0)
    rate: float = 0.0
    paid: bool = False
    key: UUID | None = None
    tags: set[str] = set()
    token: Token | None = None
    parts: list["Order"] = []


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    id: int


class Named(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    user_id: int = Field(alias="userId")
    secret: SecretStr = Field(default=SecretStr(""), alias="apiKey")


class Choosing(BaseModel):
    name: SecretStr = Field(validation_alias=AliasChoices("name", "label"))


class Lenient(BaseModel):
    id: int
    secret: SecretStr = SecretStr("")

    @field_validator("id", mode="before")
    @classmethod
    def read(cls, value: object) -> object:
        return len(value) if isinstance(value, list) else value


class FromText(BaseModel):
    id: int

    @model_validator(mode="before")
    @classmethod
    def read(cls, value: object) -> object:
        return {"id": value} if isinstance(value, str) else value


class Ids(RootModel[list[int]]):
    pass


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]
    size: int


@dataclass
class Login:
    name: str
    password: SecretStr


WHEN = "2026-11-17T10:00:00"
RIGHT: list[tuple[Any, Any]] = [
    (Order, {"id": 1, "when": WHEN}),
    (Order, {"id": "1", "when": 1.7e9, "price": "1.5", "rate": "1", "paid": "yes", "tags": ["a"]}),
    (Order, {"id": 1, "when": WHEN, "token": {"value": "a"}, "parts": [{"id": 2, "when": WHEN}]}),
    (Order, {"id": 1, "when": WHEN, "more": 1, "key": "9f0c" * 8}),
    (Strict, {"id": 1}),
    (Named, {"userId": 1}),
    (Named, {"user_id": 1, "apiKey": "a"}),
    (Choosing, {"label": "a"}),
    (Lenient, {"id": [1, 2]}),
    (FromText, "1"),
    (Ids, [1, 2]),
    (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "dog", "size": 1}),
    (Annotated[int, Field(ge=1)], 1),
    (Annotated[int, annotated_types.Gt(0)], 1),
    (Annotated[int, BeforeValidator(int)], "7"),
    (list[Order], [{"id": 1, "when": WHEN}]),
    (Login, {"name": "a", "password": "b"}),
    (SecretStr, "a"),
]
WRONG: list[tuple[Any, Any]] = [
    (Order, {"when": WHEN}),
    (Order, {"id": [], "when": WHEN}),
    (Order, {"id": 1, "when": WHEN, "parts": [{}]}),
    (Strict, {"id": 1, "more": 1}),
    (Ids, ["a", {}]),
    (Annotated[Cat | Dog, Field(discriminator="kind")], {"kind": "fox"}),
    (Annotated[int, Field(ge=1)], 0),
    (Annotated[int, annotated_types.Gt(0)], 0),
    (Login, {"name": "a"}),
    (SecretStr, 1),
]


def handler_of(annotation: Any) -> Any:
    async def handle(value): ...

    handle.__annotations__ = {"value": annotation}
    return Mainspring("postgresql://nowhere").job(handle).handler


@pytest.mark.parametrize(("annotation", "value"), RIGHT)
def test_what_pydantic_takes_is_taken(annotation, value):
    TypeAdapter(annotation).validate_python(value)

    assert handler_of(annotation).schema.fits({"value": value})


@pytest.mark.parametrize(("annotation", "value"), WRONG)
def test_what_pydantic_refuses_by_its_shape_is_refused(annotation, value):
    with pytest.raises(ValidationError):
        TypeAdapter(annotation).validate_python(value)

    assert not handler_of(annotation).schema.fits({"value": value})


@pytest.mark.parametrize(
    ("annotation", "paths"),
    [
        (SecretStr, [("value",)]),
        (SecretStr | None, [("value",)]),
        (list[SecretStr], [("value", "*")]),
        (Token, [("value", "value")]),
        (Named, [("value", "apiKey"), ("value", "secret")]),
        (Choosing, [("value", "label"), ("value", "name")]),
        (Lenient, [("value", "secret")]),
        (Login, [("value", "password")]),
    ],
)
def test_secrets_are_marked(annotation, paths):
    assert list(handler_of(annotation).secret_paths) == paths


def test_two_models_of_one_name_do_not_mix():
    def model(kind: Any) -> Any:
        parts: Any = list.__class_getitem__(kind)
        return list.__class_getitem__(create_model("Same", parts=(parts, ...)))

    async def handle(a, b): ...

    handle.__annotations__ = {"a": model(int), "b": model(str)}
    schema: Any = Mainspring("postgresql://nowhere").job(handle).handler.schema

    assert schema.fits({"a": [{"parts": [1]}], "b": [{"parts": ["x"]}]})
    assert not schema.fits({"a": [{"parts": [1]}], "b": [{"parts": [1]}]})


def test_plain_annotations_do_not_need_pydantic():
    program = (
        "import sys; from mainspring.domain.argument_schemas import describe_arguments\n"
        "from mainspring.domain.handlers import read_signature\n"
        "def handle(a: int, b: list[str] | None = None): ...\n"
        "assert describe_arguments(read_signature('k', handle), handle, lambda *_: 1 / 0)\n"
        "assert 'pydantic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
