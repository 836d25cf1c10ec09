"""The guide to health: what it tells others to run and to ask is there."""

import configparser
import json
import re
import shlex
from typing import Any

import yaml

from mainspring.settings.model import FIELDS
from tests.contract.test_docs import ROOT
from tests.support.commands import clean_environment, mainspring
from tests.support.health import Probe, free_port
from tests.support.processes import WorkerProcess, says

GUIDE = (ROOT / "docs" / "guides" / "health.md").read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
BLOCKS = BLOCK.findall(GUIDE)


def blocks(language: str) -> list[str]:
    return [text for known, text in BLOCKS if known == language]


def container() -> Any:
    (text,) = blocks("yaml")
    (found,) = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]
    return found


def test_every_variable_is_a_setting_or_names_the_file_of_settings():
    names = set(re.findall(r"MAINSPRING_(\w+)", GUIDE)) - {"CONFIG"}

    assert names
    assert {name.lower() for name in names} <= set(FIELDS)


def test_the_probes_of_the_deployment_ask_the_port_that_it_opens():
    found = container()
    variables = {each["name"]: each["value"] for each in found["env"]}
    (port,) = found["ports"]

    assert str(port["containerPort"]) == variables["MAINSPRING_HEALTH_PORT"]
    for name, path in (
        ("startupProbe", "/healthz"),
        ("livenessProbe", "/healthz"),
        ("readinessProbe", "/readyz"),
    ):
        assert found[name]["httpGet"] == {"path": path, "port": port["name"]}


def test_the_units_name_commands_that_there_are():
    units = []
    for text in blocks("ini"):
        unit = configparser.ConfigParser(strict=True)
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read_string(text)
        units.append(unit)
    service, timer = units

    program, *words = shlex.split(service["Service"]["ExecStart"])
    assert program.endswith("/mainspring")
    assert mainspring(*words, "--help").returncode == 0
    assert timer["Timer"]["OnCalendar"] == "minutely"


def test_what_is_started_as_in_the_guide_is_healthy(database_url, connection, tmp_path):
    probe, alive = Probe(free_port()), tmp_path / "alive"
    environment = clean_environment(
        MAINSPRING_DATABASE_URL=database_url,
        MAINSPRING_HEALTH_PORT=str(probe.port),
        MAINSPRING_HEALTH_FILE=str(alive),
        MAINSPRING_PORT="0",
    )
    up = WorkerProcess(["up"], environment, tmp_path / "up.log", tmp_path)
    try:
        says(up, "scheduler_started")
        up.started(connection)
        probe.becomes("readyz", 200)
        words = [line.split()[1:] for text in blocks("sh") for line in text.splitlines()]
        asked = [each for each in words if each[:1] in (["status"], ["health"])]
        done = [mainspring(*each, MAINSPRING_DATABASE_URL=database_url) for each in asked]
    finally:
        up.end()

    assert [each.returncode for each in done] == [0, 0, 0, 0]
    kinds = {each["kind"] for each in json.loads(done[1].stdout)["processes"]}
    assert kinds == {"worker", "scheduler", "server"}
    assert alive.exists()


def test_an_answer_looks_as_in_the_guide():
    (answer,) = blocks("json")

    assert set(json.loads(answer)) == {"status", "reasons"}
