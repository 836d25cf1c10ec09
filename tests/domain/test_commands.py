from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.domain.commands import RESERVED, ensure_fields_known, read_argv
from mainspring.domain.errors import InvalidDefinition, InvalidPayload

ARGV = ["sync-photos", "--album", "{album}", ["--limit={limit}"], "--", "{folder}"]
PAYLOAD = {"album": "summer", "folder": "/photos"}


@dataclass
class SomeJob:
    """What a command may know of its job."""

    id: int = 7
    tenant_id: str = "acme"
    definition: str = "sync"
    attempt: int = 2
    queue: str = "photos"


def build(argv, payload, job=None):
    return read_argv("sync", argv).arguments(payload, job or SomeJob())


def test_a_field_becomes_one_argument():
    assert build(ARGV, {**PAYLOAD, "limit": 5}) == [
        "--album",
        "summer",
        "--limit=5",
        "--",
        "/photos",
    ]


@pytest.mark.parametrize("payload", [PAYLOAD, {**PAYLOAD, "limit": None}])
def test_optional_arguments_are_left_out_without_their_field(payload):
    assert build(ARGV, payload) == ["--album", "summer", "--", "/photos"]


def test_optional_arguments_come_all_or_not_at_all():
    argv = ["x", ["--from", "{start}", "--to", "{end}"]]

    assert build(argv, {"start": 1, "end": 2}) == ["--from", "1", "--to", "2"]
    assert build(argv, {"start": 1}) == []


@pytest.mark.parametrize(
    ("value", "text"),
    [("a b", "a b"), (3, "3"), (1.5, "1.5"), (True, "true"), (False, "false"), ("", "")],
)
def test_texts_numbers_and_booleans_become_text(value, text):
    assert build(["x", "{v}"], {"v": value}) == [text]


@pytest.mark.parametrize("value", ["; rm -rf /", "$(id)", "`id`", "a\nb", "a'b\"c", "{v}", "*"])
def test_what_a_shell_would_read_is_one_argument_as_it_is(value):
    assert build(["x", "{v}"], {"v": value}) == [value]


@pytest.mark.parametrize("value", ["--rm", "-v", "-", "-5", -5])
def test_a_value_cannot_become_an_option(value):
    with pytest.raises(InvalidPayload, match="'v' starts with a dash"):
        build(["x", "{v}"], {"v": value})
    with pytest.raises(InvalidPayload, match="'v' starts with a dash"):
        build(["x", "--name", "{v}"], {"v": value})


@pytest.mark.parametrize("argv", [["x", "--name={v}"], ["x", "--", "{v}"]])
def test_a_definition_may_allow_a_dash_where_it_is_no_option(argv):
    assert build(argv, {"v": "--rm"})[-1].endswith("--rm")


@given(st.text(), st.text())
def test_no_value_changes_the_number_of_arguments_or_their_neighbours(one, other):
    try:
        built = build(["x", "first", "{a}", "--b={b}", "last"], {"a": one, "b": other})
    except InvalidPayload:
        assert one.startswith("-") or "\x00" in one + other
    else:
        assert built == ["first", one, f"--b={other}", "last"]


@pytest.mark.parametrize(
    ("payload", "said"),
    [
        ({"folder": "/p"}, "lacks 'album'"),
        ({**PAYLOAD, "folder": ["a"]}, "'folder' must be a string, a number or a boolean"),
        ({**PAYLOAD, "folder": {"a": 1}}, "'folder' must be a string, a number or a boolean"),
        ({**PAYLOAD, "folder": "a\x00b"}, "'folder' contains a NUL byte"),
    ],
)
def test_a_payload_that_cannot_become_arguments_is_refused_by_its_field(payload, said):
    with pytest.raises(InvalidPayload, match=said):
        build(ARGV, payload)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ("ls -l", "argv must be a list of arguments"),
        ([], "argv must be a list of arguments"),
        (None, "argv must be a list of arguments"),
        ([""], "argv must begin with the name or path of a program"),
        (["{program}"], "argv must begin with the name or path of a program"),
        ([7], "argv must begin with the name or path of a program"),
        (["ls", 7], "an argument must be a string or a list of strings, not 7"),
        (["ls", []], "an argument must be a string or a list of strings"),
        (["ls", ["-l"]], "name no field of the payload"),
        (["ls", "{a}{b}"], "a field must be the whole argument or the end of it"),
        (["ls", "{a}.txt"], "a field must be the whole argument or the end of it"),
        (["ls", "{a b}"], "has a brace but no field"),
        (["ls", "{a.__class__}"], "has a brace but no field"),
        (["ls", "{}"], "has a brace but no field"),
        (["ls", "{job.name}"], "names job.name, which no job has; did you mean job"),
        (["ls", ["--tenant={job.tenant}"]], "name no field of the payload"),
        (["ls", "a\x00b"], "argv contains a NUL byte"),
        (["ls", *["x"] * 1001], "more than 1000 arguments"),
    ],
)
def test_a_template_that_cannot_be_read_is_refused(argv, said):
    with pytest.raises(InvalidDefinition, match=said):
        read_argv("sync", argv)


def test_a_template_tells_which_fields_it_names():
    assert read_argv("sync", ARGV).fields == {"album", "limit", "folder"}


# What the job is


def test_reserved_fields_come_from_the_job():
    assert build(["x", *(f"{{{name}}}" for name in RESERVED)], {}) == [
        "acme",
        "7",
        "sync",
        "2",
        "photos",
    ]


@pytest.mark.parametrize(
    "payload",
    [{"job": {"tenant": "bell"}}, {"job.tenant": "bell"}, {"tenant": "bell", "tenant_id": "bell"}],
)
def test_no_payload_sets_what_comes_from_the_job(payload):
    assert build(["x", "--tenant={job.tenant}"], payload) == ["--tenant=acme"]


def test_a_name_of_the_job_cannot_become_an_option_either():
    with pytest.raises(InvalidPayload, match=r"'job\.tenant' starts with a dash"):
        build(["x", "{job.tenant}"], {}, SomeJob(tenant_id="--all"))


# Options


@pytest.mark.parametrize(
    "text", ["--{o}", "-{o}", "---{o}", "--limit{o}", "-x{o}", "-{job.tenant}"]
)
def test_a_template_in_which_the_payload_would_choose_the_option_is_refused(text):
    with pytest.raises(InvalidDefinition, match="the payload would choose the option"):
        read_argv("sync", ["tar", text])
    with pytest.raises(InvalidDefinition, match="the payload would choose the option"):
        read_argv("sync", ["tar", [text]])


@pytest.mark.parametrize("text", ["--o={o}", "-o={o}", "o{o}", "o={o}", "+{o}", "/photos/{o}"])
def test_a_field_may_be_a_value_behind_any_other_literal(text):
    assert build(["x", text], {"o": "--rm"}) == [text.replace("{o}", "--rm")]


# Fields and the schema

PROPERTIES: dict[str, Any] = {"properties": {"album": {}, "folder": {}, "limit": {}}}


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"type": "object"},
        PROPERTIES,
        {**PROPERTIES, "additionalProperties": False},
        {"properties": {"album": {}}, "patternProperties": {"^[fl]": {}}},
        {"properties": {"album": {}}, "allOf": [{"properties": {"folder": {}, "limit": {}}}]},
        {"properties": {"album": {}}, "$ref": "#/$defs/rest", "$defs": {"rest": PROPERTIES}},
        {"properties": {"album": {}}, "$ref": "https://example.com/elsewhere"},
        {"if": {"properties": {"album": {}}}, "then": PROPERTIES, "else": True},
    ],
)
def test_fields_that_a_payload_may_have_are_accepted(schema):
    ensure_fields_known("sync", read_argv("sync", ARGV), schema)


def test_a_field_that_is_no_property_of_the_schema_is_refused():
    template = read_argv("sync", ["x", "{albun}", "{job.tenant}"])

    with pytest.raises(InvalidDefinition, match=r"names \{albun\}.*did you mean album"):
        ensure_fields_known("sync", template, PROPERTIES)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("tenant", "job.tenant"), ("tenant_id", "job.tenant"), ("job_id", "job.id")],
)
def test_what_looks_like_the_job_is_refused_unless_the_schema_names_it(name, meant):
    template = read_argv("sync", ["x", f"--of={{{name}}}"])

    with pytest.raises(InvalidDefinition, match=f"write {{{meant}}}, or make {name} a property"):
        ensure_fields_known("sync", template, None)
    ensure_fields_known("sync", template, {"properties": {name: {}}})


def test_a_schema_that_refers_to_itself_is_read_once():
    schema = {**PROPERTIES, "allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"$ref": "#/$defs/a"}}}

    ensure_fields_known("sync", read_argv("sync", ARGV), schema)
