"""Templates: what is filled in, as which type, and what is refused."""

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta, timezone
from types import MappingProxyType

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mainspring.domain.errors import InputError, InvalidTemplate
from mainspring.domain.templates import check, has_template, render

SLOT_AT = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)
EVENT = {
    "size": 5,
    "name": "Zoë",
    "ok": True,
    "none": None,
    "items": [{"id": 7}, {"id": 8, "name": "Zoë"}],
}
NAMES = {"slot_at": SLOT_AT, "event": EVENT}


def nested(value: object, depth: int) -> object:
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("value", ["{{x}}", "a {{", ["a", {"k": "{{x}}"}], {"k": [["{{"]]}])
def test_a_string_that_holds_braces_makes_a_value_a_template(value):
    assert has_template(value)


@pytest.mark.parametrize("value", ["", "{x}", "}}", {"{{x}}": "key"}, [1, None, True], 3.5, None])
def test_a_value_without_such_a_string_is_none(value):
    assert not has_template(value)


def test_a_value_nested_without_end_is_looked_through():
    assert not has_template(nested("x", 50_000))
    assert has_template(nested("{{x}}", 50_000))


@pytest.mark.parametrize("name", ["size", "name", "ok", "none", "items"])
def test_an_expression_alone_keeps_the_type_of_its_value(name):
    rendered = render("{{event." + name + "}}", NAMES)

    assert rendered == EVENT[name]
    assert type(rendered) is type(EVENT[name])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("event.size", "5"),
        ("event.name", "Zoë"),
        ("event.ok", "true"),
        ("event.none", ""),
        ("event.items", '[{"id": 7}, {"id": 8, "name": "Zoë"}]'),
        ("slot_at", "2026-03-29T00:30:00Z"),
    ],
)
def test_inside_a_longer_string_a_value_becomes_text(name, text):
    assert render("<{{" + name + "}}>", NAMES) == f"<{text}>"


def test_space_around_an_expression_makes_it_a_longer_string():
    assert render(" {{event.size}}", NAMES) == " 5"
    assert render("{{ event.size }}", NAMES) == 5


def test_several_expressions_in_a_string_are_all_filled_in():
    assert render("{{event.name}}{{event.size}} of {{event.ok}}", NAMES) == "Zoë5 of true"


def test_braces_of_json_around_an_expression_are_text():
    assert json.loads(render('{"a": {"b":{{event.size}}}}', NAMES)) == {"a": {"b": 5}}


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (SLOT_AT, "2026-03-29T00:30:00Z"),
        (SLOT_AT.astimezone(timezone(timedelta(hours=-5))), "2026-03-29T00:30:00Z"),
        (SLOT_AT.replace(tzinfo=None), "2026-03-29T00:30:00Z"),
        (SLOT_AT.replace(microsecond=250_000), "2026-03-29T00:30:00.250000Z"),
    ],
)
def test_an_instant_becomes_text_in_utc(instant, text):
    assert render("{{at}}", {"at": instant}) == text


def test_instants_deep_in_a_value_become_text_as_well():
    assert render("{{event}}", {"event": {"at": [SLOT_AT]}}) == {"at": ["2026-03-29T00:30:00Z"]}
    assert render("<{{event}}>", {"event": [SLOT_AT]}) == '<["2026-03-29T00:30:00Z"]>'


def test_dicts_and_lists_are_walked_and_their_keys_left_alone():
    payload = {"{{event.size}}": ["{{event.size}}", {"k": "n{{event.size}}"}, 1, None]}

    assert render(payload, NAMES) == {"{{event.size}}": [5, {"k": "n5"}, 1, None]}


def test_a_rendered_value_shares_nothing_with_what_it_came_from():
    names = {"event": {"tags": ["a"]}}
    template = "{{event.tags}}"
    render(template, names).append("b")

    assert render(template, names) == ["a"]


def test_a_default_is_a_new_value_each_time():
    render("{{event.tags|default([])}}", NAMES).append("b")

    assert render("{{event.tags|default([])}}", NAMES) == []


def test_a_path_goes_through_lists_by_number():
    assert render("{{event.items.0.id}} {{event.items.1.id}}", NAMES) == "7 8"


def test_a_path_may_go_through_any_mapping_and_through_keys_of_digits():
    names = {"headers": MappingProxyType({"content-type": {"0": "json"}})}

    assert render("{{headers.content-type.0}}", names) == "json"


@pytest.mark.parametrize(
    "path",
    [
        "absent",
        "event.absent",
        "event.items.2",
        "event.items.-1",
        "event.items.x",
        "event.items.²",
        "event.items." + "9" * 5000,
        "event.size.real",
        "event.name.0",
        "event.__class__",
        "event.keys",
        "event.none.x",
    ],
)
def test_a_path_that_leads_nowhere_is_refused_unless_it_has_a_default(path):
    with pytest.raises(InvalidTemplate, match=f"there is no '{path[:80]}'"):
        render("{{" + path + "}}", NAMES)
    assert render("{{" + path + "|default('x')}}", NAMES) == "x"


@pytest.mark.parametrize(
    ("literal", "value"),
    [
        ("'x'", "x"),
        ("''", ""),
        (r"'it\'s \\ here'", r"it's \ here"),
        ("'}} and | and )'", "}} and | and )"),
        ('"double"', "double"),
        (" 0 ", 0),
        ("-1.5e3", -1500.0),
        ("true", True),
        ("null", None),
        ('{"a": {"b": {}}}', {"a": {"b": {}}}),
        ('["}}"]', ["}}"]),
    ],
)
def test_a_default_is_any_json_value_or_a_text_in_single_quotes(literal, value):
    assert render("{{absent|default(" + literal + ")}}", NAMES) == value


def test_a_default_does_not_stand_in_for_a_null():
    assert render("{{event.none|default('x')}}", NAMES) is None


def test_a_default_may_come_before_or_after_another_filter():
    assert render("{{absent|upper|default('a')}}", NAMES) == "a"
    assert render("{{absent|default('a')|upper}}", NAMES) == "A"


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("slot_at|date", "2026-03-29"),
        ("text|date", "2026-12-31"),
        ("day|date", "2026-01-05"),
        ("event.name|upper", "ZOË"),
        ("event.name | lower", "zoë"),
        ("event.ok|upper", "TRUE"),
        ("event.size|string", "5"),
        ("event.none|string", ""),
        ("slot_at|date|string|upper", "2026-03-29"),
        ("whole|number", -12),
        ("part|number", 12.5),
        ("event.size|number", 5),
    ],
)
def test_a_filter_changes_the_value(expression, value):
    texts = {
        "text": "2026-12-31T23:30:00-05:00",
        "day": "2026-01-05",
        "whole": "-12",
        "part": "12.5",
    }
    rendered = render("{{" + expression + "}}", NAMES | texts)

    assert rendered == value
    assert type(rendered) is type(value)


def test_the_date_of_an_instant_is_the_one_in_utc():
    new_york = timezone(timedelta(hours=-4))

    assert render("{{at|date}}", {"at": SLOT_AT.astimezone(new_york)}) == "2026-03-29"


@pytest.mark.parametrize("value", ["", "x", "1_000", "٣", "nan", "1e999", "9" * 5000, True, None])
def test_what_is_not_a_number_is_refused(value):
    with pytest.raises(InvalidTemplate, match="'size' cannot be read as a number"):
        render("{{size|number}}", {"size": value})


@pytest.mark.parametrize("value", ["", "yesterday", "2026-02-30", 20260101, None, []])
def test_what_is_not_a_date_is_refused(value):
    with pytest.raises(InvalidTemplate, match="'day' cannot be read as a date"):
        render("{{day|date}}", {"day": value})


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{", "expected a name .* at character 3 of a template, not its end"),
        ("a {{x", "expected '|' or '}}' at character 6"),
        ("{{x}", "not '}'"),
        ("{{x}} {{", "expected a name .* at character 9"),
        ("{{}}", "expected a name"),
        ("{{{x}}}", "expected a name .* not '{x}}}'"),
        ("{{0}}", "expected a name"),
        ("{{.x}}", "expected a name"),
        ("{{x.}}", "not '.}}'"),
        ("{{x()}}", "not '\\(\\)}}'"),
        ("{{x y}}", "not 'y}}'"),
        ("{{x|}}", "expected the name of a filter"),
        ("{{x|uper}}", "unknown filter 'uper'; did you mean 'upper'"),
        ("{{x|attr}}", "choose from date, default, lower, number, string, upper"),
        ("{{x|upper('a')}}", "expected '|' or '}}' at character 10"),
        ("{{x|default}}", "expected a value, as in default\\('x'\\)"),
        ("{{x|default()}}", "expected a JSON value"),
        ("{{x|default(y)}}", "expected a JSON value"),
        ("{{x|default('y}}", "expected a JSON value"),
        ("{{x|default('y'}}", "expected '\\)'"),
        ("{{x|default(NaN)}}", "expected a JSON value"),
        ("{{x|default(1e999)}}", "expected a JSON value"),
        ("{{x|default(" + "[" * 9000, "expected a JSON value"),
        ("{{x|default(" + "[" * 21 + "0" + "]" * 21 + ")}}", "nested more than 20 deep"),
    ],
)
def test_a_malformed_template_is_refused_by_check_and_by_render(template, problem):
    with pytest.raises(InvalidTemplate, match=problem):
        check([template], {"x"})
    with pytest.raises(InvalidTemplate, match=problem):
        render([template], {"x": 1})


def test_a_name_that_is_not_known_is_refused_though_it_has_a_default():
    check({"a": ["{{slot_at}} {{event.any.thing}}"]}, {"slot_at", "event"})

    with pytest.raises(InvalidTemplate, match="unknown name 'slotat'; did you mean 'slot_at'"):
        check({"a": ["{{event.x}} {{slotat|default('x')}}"]}, {"slot_at", "event"})


def test_a_payload_may_be_nested_20_deep_and_not_21():
    check(nested("{{x}}", 20), {"x"})
    assert render(nested("{{x}}", 20), {"x": 1}) == nested(1, 20)

    with pytest.raises(InvalidTemplate, match="nested more than 20 deep"):
        check(nested("{{x}}", 21), {"x"})
    with pytest.raises(InvalidTemplate, match="nested more than 20 deep"):
        render(nested("{{x}}", 21), {"x": 1})


def test_a_payload_without_a_template_may_be_nested_deeper():
    payload = nested("plain", 21)
    check(payload, {"x"})

    assert render(payload, {"x": 1}) is payload


def test_a_value_may_be_nested_200_deep_and_not_201():
    assert render("{{x}}", {"x": nested(1, 200)}) == nested(1, 200)

    with pytest.raises(InvalidTemplate, match="nested more than 200 deep"):
        render("{{x}}", {"x": nested(1, 201)})


def test_a_template_may_have_10000_characters_and_not_10001():
    assert render("{{x}}" + "a" * 9_995, {"x": "b"}) == "b" + "a" * 9_995

    with pytest.raises(InvalidTemplate, match="10,000 characters, not 10,001"):
        render("{{x}}" + "a" * 9_996, {"x": "b"})


def test_a_text_without_an_expression_may_be_of_any_length():
    text = "a" * 10_001
    check(text, {"x"})

    assert render([text], {}) == [text]


@pytest.mark.parametrize("template", ["{{x}}", "<{{x}}>"])
@pytest.mark.parametrize("value", ["a" * 1_000_000, {"a" * 1_000_000: 1}])
def test_a_short_template_cannot_grow_a_huge_result(template, value):
    assert len(render([template] * 30, {"x": value})) == 30

    with pytest.raises(InvalidTemplate, match="more than 67,108,864 characters"):
        render([template] * 70, {"x": value})


def test_a_payload_may_have_200_expressions_and_not_201():
    check(["{{x}}"] * 200, {"x"})
    assert render(["{{x}}{{x}}"] * 100, {"x": "a"}) == ["aa"] * 100

    for payload in (["{{x}}"] * 201, ["{{x}}" * 201]):
        with pytest.raises(InvalidTemplate, match="at most 200 expressions"):
            check(payload, {"x"})
        with pytest.raises(InvalidTemplate, match="at most 200 expressions"):
            render(payload, {"x": "a"})


def test_a_payload_with_a_template_may_have_10000_values_and_not_10001():
    check(["{{x}}", *range(9_998)], {"x"})

    for refuse in (
        lambda payload: check(payload, {"x"}),
        lambda payload: render(payload, {"x": 1}),
    ):
        with pytest.raises(InvalidTemplate, match="at most 10,000 values"):
            refuse(["{{x}}", *range(9_999)])


def test_an_invalid_template_is_an_input_error_with_a_code():
    assert issubclass(InvalidTemplate, InputError)
    assert InvalidTemplate.code == "invalid_template"


@settings(deadline=None)
@given(st.text(alphabet="{}|.'\\\"() xdefault0[-", max_size=60))
@example("{{x|default('\\'}}")
def test_any_text_is_rendered_or_refused(text):
    with suppress(InvalidTemplate):
        check(text, {"x"})
    with suppress(InvalidTemplate):
        json.dumps(render(text, {"x": "1"}), allow_nan=False)


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists))
def test_any_default_comes_back_as_it_was_written(value):
    assert render("{{absent|default(" + json.dumps(value) + ")}}", {}) == value
