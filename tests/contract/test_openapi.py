"""The OpenAPI document says all that an integrator needs: of every field, parameter and answer.

A new endpoint or field is held to this without being named here.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import jsonschema_rs
import pytest

from mainspring.api.app import create_app
from mainspring.api.openapi.document import TAGS
from mainspring.api.openapi.fields import FIELDS, PARTS
from mainspring.api.openapi.operations import OPEN_REFUSALS, REFUSALS
from mainspring.db.database import Database
from mainspring.settings import load

DOCUMENT = create_app(
    Database(load(database_url="postgresql://nowhere/nothing")), version="test"
).openapi()
SCHEMAS: Mapping[str, Any] = DOCUMENT["components"]["schemas"]
# Their answers hold a secret, which is not kept to be sent again; or they are safe to repeat.
NOT_KEPT = {"create_token", "create_login_link", "register_worker"}


class Operation(NamedTuple):
    method: str
    path: str
    facts: Mapping[str, Any]

    @property
    def parameters(self) -> Mapping[str, Any]:
        return {each["name"]: each for each in self.facts.get("parameters", ())}

    @property
    def answers(self) -> Mapping[str, Any]:
        answers: Mapping[str, Any] = self.facts["responses"]
        return answers

    @property
    def successes(self) -> list[Any]:
        return [answer for status, answer in self.answers.items() if status < "300"]

    @property
    def schema(self) -> Mapping[str, Any]:
        """The schema of what it answers with."""
        answer = self.successes[0].get("content", {}).get("application/json", {})
        return resolved(answer.get("schema", {}))


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    return SCHEMAS[name] if name else schema


OPERATIONS = {
    facts["operationId"]: Operation(method, path, facts)
    for path, methods in DOCUMENT["paths"].items()
    for method, facts in methods.items()
}
each_operation = pytest.mark.parametrize("name", sorted(OPERATIONS))
each_schema = pytest.mark.parametrize("name", sorted(SCHEMAS))


def test_operation_ids_are_short_and_unique():
    ids = [
        facts["operationId"] for methods in DOCUMENT["paths"].values() for facts in methods.values()
    ]

    assert [name for name, count in Counter(ids).items() if count > 1] == []
    assert [name for name in ids if not re.fullmatch(r"[a-z]+(_[a-z]+){1,2}", name)] == []


@each_operation
def test_an_operation_is_described_and_belongs_to_one_group(name):
    facts = OPERATIONS[name].facts

    assert facts["description"]
    assert len(facts["tags"]) == 1
    assert facts["tags"][0] in TAGS


def test_health_alone_needs_no_token():
    assert [name for name, each in OPERATIONS.items() if each.facts.get("security") == []] == [
        "check_health"
    ]
    assert set(OPERATIONS["check_health"].answers) == {"200", "400", "429", "500", "503"}


@each_operation
def test_a_parameter_is_described_with_an_example_that_fits(name):
    for parameter in OPERATIONS[name].parameters.values():
        assert parameter.get("description"), parameter["name"]
        assert "example" in parameter, f"{parameter['name']}: see openapi/operations.py"
        fits(parameter["schema"], parameter["example"])


@each_operation
def test_every_answer_is_declared(name):
    operation = OPERATIONS[name]
    needed = set(REFUSALS)
    if "requestBody" not in operation.facts:
        needed -= {408, 413}
    if "If-Match" not in operation.parameters:
        needed -= {412}
    if operation.facts.get("security") == []:
        needed &= OPEN_REFUSALS

    assert operation.successes
    assert {str(status) for status in needed} <= set(operation.answers)
    for status, answer in operation.answers.items():
        assert answer["description"] not in ("", "Successful Response"), status
        if status >= "300":
            assert list(answer["content"]) == ["application/problem+json"]


@each_operation
def test_bodies_have_examples_that_fit(name):
    facts = OPERATIONS[name].facts
    bodies = [facts.get("requestBody", {}), *facts["responses"].values()]
    for content in (each for body in bodies for each in body.get("content", {}).values()):
        assert "schema" in content
        fits(content["schema"], content["example"])


@each_schema
def test_every_property_is_described_with_an_example_that_fits(name):
    for field, schema in SCHEMAS[name].get("properties", {}).items():
        where = f"{name}.{field}: describe it in its model, or in api/openapi/*_fields.py"
        assert schema.get("description"), where
        assert schema.get("examples"), where
        for example in schema["examples"]:
            fits(schema, example)


def fits(schema: Mapping[str, Any], example: Any) -> None:
    whole = {**schema, "components": {"schemas": SCHEMAS}}
    jsonschema_rs.validator_for(whole).validate(example)


def test_every_schema_is_described():
    assert [name for name, schema in SCHEMAS.items() if not described(schema)] == []


def described(schema: Mapping[str, Any]) -> bool:
    return bool(schema.get("description"))


def lists() -> Iterator[tuple[str, Operation]]:
    for name, operation in OPERATIONS.items():
        if operation.method == "get" and "items" in operation.schema.get("properties", {}):
            yield name, operation


def test_every_list_is_paged():
    assert {"list_jobs", "list_workers", "list_attempts"} <= {name for name, _ in lists()}
    for name, operation in lists():
        assert {"limit", "cursor"} <= set(operation.parameters), name
        assert set(operation.schema["required"]) == {"items", "next_cursor"}, name
    arrays = [
        name
        for name, operation in OPERATIONS.items()
        if operation.method == "get" and operation.schema.get("type") == "array"
    ]
    assert arrays == []


@each_operation
def test_a_filter_takes_several_values(name):
    for parameter in OPERATIONS[name].parameters.values():
        schema = parameter["schema"]
        is_choice = "enum" in resolved(schema)
        assert not is_choice or parameter["in"] == "path", (
            f"{parameter['name']} chooses one of several words: take a list of them"
        )


def test_a_change_takes_if_match_and_a_create_an_idempotency_key():
    tagged = {
        operation.path
        for operation in OPERATIONS.values()
        if operation.method == "get" and "ETag" in operation.successes[0].get("headers", {})
    }
    assert len(tagged) > 3
    for name, operation in OPERATIONS.items():
        if operation.method == "patch":
            assert operation.path in tagged, name
        if operation.method in ("patch", "put", "delete") and operation.path in tagged:
            assert "If-Match" in operation.parameters, name
        if operation.method == "post" and {"201", "202"} & set(operation.answers):
            assert ("Idempotency-Key" in operation.parameters) is (name not in NOT_KEPT), name


def test_one_word_stands_for_one_thing():
    names = {
        field
        for name, schema in SCHEMAS.items()
        for field in schema.get("properties", {})
        if name != "Problem"
    } | {name for operation in OPERATIONS.values() for name in operation.parameters}

    assert names & {"status", "enabled", "is_disabled", "disabled", "active"} == set()
    booleans = {
        field
        for schema in SCHEMAS.values()
        if schema.get("title", "").startswith(("New", "Page")) is False
        for field, described in schema.get("properties", {}).items()
        if described.get("type") == "boolean" and field.startswith(("is_", "has_")) is False
    }
    # What a request asks for, and what a run was.
    assert booleans <= {"all", "dry_run", "force", "retry", "trusted", "last_run_success"}


def test_an_id_is_text():
    wrong = [
        f"{name}.{field}"
        for name, schema in SCHEMAS.items()
        for field, described in schema.get("properties", {}).items()
        if field == "id" or (field.endswith("_id") and field not in ("correlation_id", "actor_id"))
        if "integer" in [each.get("type") for each in kinds(described)]
        and "string" not in [each.get("type") for each in kinds(described)]
    ]

    assert wrong == []


def kinds(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(schema.get("anyOf", [schema]))


def test_a_refusal_has_one_shape():
    problem = SCHEMAS["Problem"]

    assert {"type", "title", "status", "code", "detail", "errors"} == set(problem["required"])
    assert "job_id" in problem["properties"]


def test_no_description_is_of_a_field_that_is_gone():
    used = {
        key
        for name, schema in SCHEMAS.items()
        for field in schema.get("properties", {})
        for key in (field, f"{name}.{field}")
    }

    assert sorted(set(FIELDS) - used) == []
    assert len(FIELDS) == sum(len(part) for part in PARTS), "a field is described twice"
