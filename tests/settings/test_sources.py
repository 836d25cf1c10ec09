"""Settings from flags, environment and file: which wins, what is refused, what is never shown."""

import os
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mainspring.domain.errors import SettingsError
from mainspring.services.secrets import generate_key
from mainspring.settings import Settings, load
from mainspring.settings.model import FIELDS, NAMES, range_of

# Three values for each, in the order flag, environment, file.
VALUES = {
    "port": (1, 2, 3),
    "lease_seconds": (1.5, 2.5, 3.5),
    "default_schedules": (False, False, False),
    "unknown_handler": ("fail", "fail", "fail"),
    "prune_tables": ("a.b.c", "d.e.f", "g.h.i"),
    "command_environment": ("", "A", "B"),
    "data_dir": (Path("/1"), Path("/2"), Path("/3")),
}
PLACES = st.fixed_dictionaries({name: st.sets(st.sampled_from([0, 1, 2])) for name in VALUES})


@pytest.fixture(autouse=True)
def _nowhere(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("MAINSPRING_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def named_file(tmp_path_factory) -> Path:
    return Path(tmp_path_factory.mktemp("settings")) / "named.toml"


@contextmanager
def variables(values: Mapping[str, str]) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in values.items():
            patch.setenv(name, value)
        yield


def literal(value: object) -> str:
    return str(value).lower() if isinstance(value, bool | int | float) else f'"{value}"'


@settings(max_examples=50)
@given(PLACES)
def test_of_any_places_the_first_wins(named_file, places):
    written = {name: where for name, where in places.items() if where}
    flags = {name: VALUES[name][0] for name, where in written.items() if 0 in where}
    environment = {
        f"MAINSPRING_{name.upper()}": str(VALUES[name][1])
        for name, where in written.items()
        if 1 in where
    }
    lines = [f"{name} = {literal(VALUES[name][2])}" for name in written if 2 in written[name]]
    named_file.write_text("\n".join(lines))

    with variables({**environment, "MAINSPRING_CONFIG": str(named_file)}):
        loaded = load(**flags)

    expected = {name: VALUES[name][min(where)] for name, where in written.items()}
    assert loaded.values() == Settings().values() | expected
    assert loaded.given == set(written)


def test_the_file_of_the_working_directory_is_read_and_may_be_missing():
    assert load().port == 8080

    Path("mainspring.toml").write_text("port = 9000")

    assert load().port == 9000


def test_a_file_that_is_named_has_to_exist(monkeypatch):
    Path("mainspring.toml").write_text("port = 9000")
    monkeypatch.setenv("MAINSPRING_CONFIG", "other.toml")

    with pytest.raises(SettingsError, match=r"the settings file other\.toml, named by --config or"):
        load()


@pytest.mark.parametrize(("named", "port"), [("", 9000), (os.devnull, 8080)])
def test_no_name_is_the_default_file_and_dev_null_is_none(monkeypatch, named, port):
    Path("mainspring.toml").write_text("port = 9000")
    monkeypatch.setenv("MAINSPRING_CONFIG", named)

    assert load().port == port


def test_a_variable_in_small_letters_counts_less_than_one_in_capitals(monkeypatch):
    monkeypatch.setenv("MAINSPRING_PORT", "2")
    monkeypatch.setenv("mainspring_port", "1")
    assert load().port == 2

    monkeypatch.delenv("MAINSPRING_PORT")
    assert load().port == 1


def test_a_list_may_be_an_array():
    Path("mainspring.toml").write_text('command_directories = ["/a", "/b"]\nprune_tables = []')

    assert load().command_paths == (Path("/a"), Path("/b"))
    assert load().prunable_columns == ()


def test_an_empty_url_is_none(monkeypatch):
    Path("mainspring.toml").write_text('database_url = "postgresql:///app"')
    assert load().database_url == "postgresql:///app"

    monkeypatch.setenv("MAINSPRING_DATABASE_URL", "")
    assert load().database_url is None


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("port = 65536", "setting port: 65536 is not a whole number from 0 to 65,535"),
        ("port = -1", "setting port: -1 is not a whole number from 0 to 65,535"),
        ("port = true", "setting port: True is not a whole number from 0 to 65,535"),
        ("lease_seconds = 0.99", "setting lease_seconds: 0.99 is not a number from 1 to 3600"),
        ("lease_seconds = nan", "setting lease_seconds: nan is not a number from 1 to 3600"),
        ("use_pooler = 'maybe'", "setting use_pooler: 'maybe' is not true or false"),
        ("unknown_handler = 'x'", "setting unknown_handler: 'x' is not one of wait, fail"),
        ("host = 5", "setting host: 5 is not a string"),
        ('host = "a\\u0000"', "setting host: it contains a NUL character"),
        (
            "command_directories = ['a:b']",
            (
                "setting command_directories: ['a:b'] is not a string, "
                "or an array of strings without ':'"
            ),
        ),
        ("database_url = 5", "setting database_url is not a string"),
    ],
)
def test_a_wrong_value_names_the_setting_the_value_the_range_and_the_file(line, said):
    Path("mainspring.toml").write_text(line)

    with pytest.raises(SettingsError) as caught:
        load()

    assert str(caught.value) == f"{said}; it is set in mainspring.toml"


@pytest.mark.parametrize(
    ("line", "value"),
    [("port = 0", 0), ("port = 65535", 65535), ("port = '7'", 7), ("port = 7.0", 7)],
)
def test_a_value_in_its_range_is_taken(line, value):
    Path("mainspring.toml").write_text(line)

    assert load().port == value


def test_a_wrong_value_says_which_place_it_is_from(monkeypatch):
    monkeypatch.setenv("MAINSPRING_PORT", "x")
    with pytest.raises(SettingsError, match="set by MAINSPRING_PORT in the environment"):
        load()
    with pytest.raises(SettingsError, match=r"-1 is not .* set by a flag or an argument"):
        load(port=-1)

    assert load(port=1).port == 1


def test_a_long_value_is_cut():
    with pytest.raises(SettingsError) as caught:
        load(port="x" * 100_000)

    assert len(str(caught.value)) < 300


def test_what_is_no_setting_is_refused_with_what_was_meant():
    with pytest.raises(SettingsError, match="no setting 'prot'; did you mean port"):
        load(prot=1)


def test_every_number_has_a_range():
    numbers = {name for name in NAMES if FIELDS[name].kind in {int, float}}

    assert {name for name in numbers if " to " not in range_of(name)} == set()


def test_keys_are_not_shown():
    key = generate_key()
    loaded = load(encryption_keys=key, database_url="postgres://ada:hunter2@db/app")

    assert loaded.encryption_keys.reveal() == key
    assert key not in f"{loaded!r} {loaded} {loaded.values()}"
    assert "hunter2" not in f"{loaded!r} {loaded}"


def test_keys_come_from_the_environment(monkeypatch):
    key = generate_key()
    monkeypatch.setenv("MAINSPRING_ENCRYPTION_KEYS", key)

    assert load().encryption_keys.reveal() == key


@pytest.mark.parametrize("is_in_file", [True, False])
def test_a_wrong_key_is_refused_without_being_shown(is_in_file):
    wrong = "-".join(["hunter2", "is", "no", "key"])
    Path("mainspring.toml").write_text(f"encryption_keys = '{wrong}'" if is_in_file else "")

    with pytest.raises(
        SettingsError, match=r"encryption_keys: .*key number 1 is invalid"
    ) as caught:
        load(**{} if is_in_file else {"encryption_keys": wrong})

    assert wrong not in "".join(traceback.format_exception(caught.value))
