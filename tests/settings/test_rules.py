"""Settings: which of several wins, what was meant, and what is doubtful."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mainspring.domain.errors import SettingsError
from mainspring.domain.suggestions import did_you_mean
from mainspring.settings import Settings, rules
from mainspring.settings.rules import (
    PRECEDENCE,
    Found,
    Level,
    Origin,
    doubts,
    read_toml,
    unknown_keys,
    unknown_variables,
    winners,
)

NAMES = ["port", "host", "lease_seconds"]
LAYERS = st.dictionaries(
    st.sampled_from(PRECEDENCE), st.dictionaries(st.sampled_from(NAMES), st.integers())
)
DEFAULTS = Settings().values()


def test_flags_come_before_the_environment_and_that_before_the_file():
    assert PRECEDENCE == (Origin.FLAG, Origin.ENVIRONMENT, Origin.FILE)


@given(LAYERS)
def test_the_first_that_has_a_setting_wins(layers):
    found = winners(layers)

    for name in NAMES:
        having = [origin for origin in PRECEDENCE if name in layers.get(origin, {})]
        if having:
            assert found.pop(name) == Found(layers[having[0]][name], having[0])
    assert found == {}


def test_what_is_close_is_suggested_and_nothing_else():
    assert did_you_mean("prot", NAMES) == "; did you mean port?"
    assert did_you_mean("colour", NAMES) == ""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("port = 1\nhost = = 2", "f.toml, line 2: this is not valid TOML: Invalid value"),
        ("port = 1\nport = 2", "f.toml, line 2: this is not valid TOML: Cannot overwrite a value"),
        ('host = "x', "f.toml, line 1: this is not valid TOML: Unterminated string"),
        (f"x = {'[' * 100_000}", "f.toml is nested too deeply to be read"),
        (f"x = {'9' * 5000}", "f.toml contains a number that is too long to be read"),
    ],
)
def test_what_is_not_toml_is_one_sentence_with_its_line(text, said):
    with pytest.raises(SettingsError) as caught:
        read_toml(text, "f.toml")

    assert str(caught.value) == said


def test_an_unknown_key_names_the_file_and_what_was_meant():
    values = {"prot": 1, "port": 1, "colour": 2, "jobs": {"port": 1}}

    assert [finding.message for finding in unknown_keys(values, NAMES, "f.toml")] == [
        "f.toml: there is no setting 'prot'; did you mean port?",
        "f.toml: there is no setting 'colour'",
        (
            "f.toml: 'jobs' is a table, but settings are not in tables; "
            "write them at the top of the file"
        ),
    ]


def test_an_unknown_variable_is_a_warning_with_what_was_meant():
    names = ["MAINSPRING_PROT", "mainspring_port", "MAINSPRING_CONFIG", "MAINSPRINGS", "PATH"]

    (found,) = unknown_variables(names, NAMES)

    assert found.level is Level.WARNING
    assert found.message == (
        "MAINSPRING_PROT is not a setting and has no effect; did you mean MAINSPRING_PORT?"
    )


def test_the_defaults_are_not_doubtful():
    assert doubts(DEFAULTS) == []


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"host": "0.0.0.0"}, "host 0.0.0.0 can be reached from other machines"),
        ({"use_pooler": True}, "without database_url there is no pooler"),
        ({"database_url": "postgresql:///", "data_dir": "/x"}, "data_dir is not used"),
        (
            {"max_payload_bytes": 1048576, "max_request_bytes": 1048575},
            "(1,048,576) is above max_request_bytes (1,048,575)",
        ),
        ({"prune_tables": "a.b.c, sessions.at"}, "'sessions.at' is not schema.table.column"),
        ({"command_environment": "PATH,A=B"}, "'A=B' is not the name of a variable"),
    ],
)
def test_what_is_hardly_meant_is_a_doubt(values, said):
    (found,) = doubts(DEFAULTS | values)

    assert found.level is Level.WARNING
    assert found.key in values
    assert said in found.message


@pytest.mark.parametrize(
    "values",
    [
        {"host": "localhost"},
        {"host": "::1"},
        {"use_pooler": True, "database_url": "postgresql:///"},
        {"data_dir": "/x"},
        {"max_request_bytes": 1024**2},
        {"prune_tables": "a.b.c, d.e.f"},
    ],
)
def test_what_goes_together_is_none(values):
    assert doubts(DEFAULTS | values) == []


def test_urls_of_roles_are_read_by_role():
    text = "ada=postgresql://ada:a%20b@db/x?options=-c%20a%3Db my%20team=postgres://u@db"

    assert rules.urls_of_roles(text) == {
        "ada": "postgresql://ada:a%20b@db/x?options=-c%20a%3Db",
        "my team": "postgres://u@db",
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("postgresql://ada:hunter2@db", "entry 1 must be role=URL"),
        ("ada=postgresql://db bob", "entry 2 must be role=URL"),
        ("=postgresql://db", "entry 1 must be role=URL"),
        ("ada=postgresql://db ada=postgresql://other", "entry 2 names a role that an entry before"),
    ],
)
def test_urls_of_roles_that_cannot_be_are_refused_without_being_shown(text, said):
    with pytest.raises(ValueError, match=said) as refused:
        rules.urls_of_roles(text)

    assert "hunter2" not in str(refused.value)
