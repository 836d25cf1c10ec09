"""What SQL finds wrong with a payload is wrong, and what it vouches for fits."""

import json

import pytest

from mainspring.domain.schemas import Schema

OBJECT = {"type": "object"}
SCHEMAS = [
    {},
    OBJECT,
    {"type": "object", "required": ["a"]},
    {"type": "object", "additionalProperties": False, "properties": {"a": {"type": "integer"}}},
    {"properties": {"a": {"type": ["string", "null"]}}},
    {"properties": {"a": {"enum": [1, "x", None]}}},
    {"properties": {"a": {"const": 1}}},
    {"properties": {"a": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {}}]}}},
    {"properties": {"a": {"type": "array", "items": {"type": "integer"}}}},
    {"properties": {"a": {"type": "object", "additionalProperties": {"type": "number"}}}},
    {"properties": {"a": {"type": "object", "required": ["b"]}}},
    {"additionalProperties": {"type": "boolean"}},
    {"additionalProperties": False, "patternProperties": {"^a": {}}},
    {"properties": {"a": True, "b": False}},
    {"properties": {"a": {"type": "integer", "minimum": 5}}},
    {"properties": {"a": {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}}},
    {"minProperties": 1},
    {"not": {"required": ["a"]}},
    {"$ref": "#/$defs/x", "$defs": {"x": {"required": ["a"]}}},
    {"properties": {"a": {"type": "string", "default": "x", "description": "d", "title": "t"}}},
]
VALUES = [1, 1.0, 1.5, 7, "x", "", None, True, [], [1], ["x"], [1, "x"], {}, {"b": 1}, {"c": "x"}]
PAYLOADS = [{}, {"b": 1}, {"other": True}, *({"a": value} for value in VALUES)]


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_sql_agrees_with_the_program(connection, schema):
    rows = connection.execute(
        "select payload::text, mainspring.wrong_value(%(schema)s::text::jsonb, payload, 'payload'),"
        "       mainspring.is_known_schema(%(schema)s::text::jsonb)"
        "  from unnest(%(payloads)s::text[]::jsonb[]) as payload",
        {"schema": json.dumps(schema), "payloads": [json.dumps(each) for each in PAYLOADS]},
    ).fetchall()

    fits = Schema("k", schema).fits
    refused_wrongly = [text for text, problem, _ in rows if problem and fits(json.loads(text))]
    vouched_wrongly = [
        text
        for text, problem, is_known in rows
        if is_known and not problem and not fits(json.loads(text))
    ]
    assert (refused_wrongly, vouched_wrongly) == ([], [])


def test_no_value_is_repeated(connection):
    ((problem,),) = connection.execute(
        """select mainspring.wrong_value(
            '{"properties": {"pin": {"type": "integer"}}}', '{"pin": "1234"}', 'payload')"""
    ).fetchall()

    assert problem == "payload/pin: must be of the type integer, not string"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"type": 1},
        {"required": "a"},
        {"properties": []},
        {"enum": {}},
        {"anyOf": 1},
        {"items": 1},
        {"additionalProperties": "x"},
        [],
        1,
    ],
    ids=json.dumps,
)
def test_a_schema_of_nonsense_raises_nothing(connection, schema):
    connection.execute(
        "select mainspring.wrong_value(%(schema)s::text::jsonb, payload, ''),"
        "       mainspring.is_known_schema(%(schema)s::text::jsonb)"
        "  from unnest(%(payloads)s::text[]::jsonb[]) as payload",
        {"schema": json.dumps(schema), "payloads": [json.dumps(each) for each in PAYLOADS]},
    )


def test_large_payloads_are_left_to_a_program(connection):
    query = "select mainspring.is_quickly_checked(%s::text::jsonb, %s::text::jsonb)"
    small, large = {"a": 1}, {"a": list(range(100_000))}

    assert connection.execute(query, (json.dumps(OBJECT), json.dumps(small))).fetchone() == (True,)
    assert connection.execute(query, (json.dumps(OBJECT), json.dumps(large))).fetchone() == (False,)
