"""The guide to configuration and the reference of settings say what the program does."""

import re
import tomllib
from pathlib import Path

import pytest

from mainspring.domain.jobs.options import ATTEMPTS
from mainspring.services.settings import check
from mainspring.settings import load
from mainspring.settings.fields import SecretText
from mainspring.settings.model import FIELDS, NAMES, range_of
from mainspring.settings.rules import OTHER_VARIABLES
from tests.contract.test_docs import ROOT

REFERENCE = (ROOT / "docs" / "reference" / "settings.md").read_text()
GUIDE = (ROOT / "docs" / "guides" / "configuration.md").read_text()
ROW = re.compile(r"^\| `(\w+)` \| (.*?) ?\| (.*?) ?\| (.*?) ?\| (.+) \|$", re.MULTILINE)
FILE = re.search(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
UNITS = ("seconds", "bytes", "days")
# As the document of that product states them, in its own units.
AYB = {
    "concurrency": ("worker_concurrency", 1, 64),
    "poll_seconds": ("poll_interval_ms", 0.1, 60),
    "lease_seconds": ("lease_duration_s", 30, 3600),
}


def default_of(name: str) -> str:
    value = FIELDS[name].default
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return f"{value:,}" if value >= 10_000 else f"{value:g}"
        case SecretText() | "" | None:
            return "none"
    return f"`{value}`"


def test_the_reference_has_the_default_and_the_range_of_every_setting():
    rows = {name: (default, span) for name, _, default, span, _ in ROW.findall(REFERENCE)}

    assert rows.keys() == NAMES
    assert {name: default for name, (default, _) in rows.items()} == {
        name: default_of(name) for name in rows
    }
    ranges = {name: span.replace("`", "") for name, (_, span) in rows.items() if range_of(name)}
    assert ranges == {name: range_of(name) for name in ranges}


def test_the_reference_has_the_unit_that_a_name_says():
    for name, unit, *_ in ROW.findall(REFERENCE):
        said = name.rpartition("_")[2]
        assert unit == said or said not in UNITS, name


def test_every_variable_that_is_no_setting_is_documented():
    assert [name for name in sorted(OTHER_VARIABLES) if f"`{name}`" not in REFERENCE] == []


def test_what_ayb_allows_is_allowed_here():
    for name, (theirs, least, most) in AYB.items():
        assert f"| `{theirs}` |" in REFERENCE
        assert load(**{name: least}) != load(**{name: most})
    assert set(range(1, 102)) <= set(ATTEMPTS)


def test_the_file_of_the_guide_is_complete_and_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert FILE is not None
    monkeypatch.chdir(tmp_path)
    Path("mainspring.toml").write_text(FILE[1])

    loaded = load()

    assert loaded.given == set(tomllib.loads(FILE[1]))
    assert (loaded.port, loaded.drain_seconds) == (8090, 120)
    assert [finding.key for finding in check()] == ["command_directories"]


@pytest.mark.parametrize("line", re.findall(r"^error: .*", GUIDE, re.MULTILINE))
def test_the_errors_of_the_guide_are_what_is_said(line: str, tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mainspring.toml").write_text("leese_seconds = 1\nport = 99999\n")

    assert line.removeprefix("error: ") in [finding.message for finding in check()]
