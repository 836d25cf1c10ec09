"""The lists of nouns are what the tool writes from the modules that hold the nouns."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).parents[2]
specification = importlib.util.spec_from_file_location(
    "write_nouns", ROOT / "tools" / "write_nouns.py"
)
assert specification is not None
assert specification.loader is not None
tool = importlib.util.module_from_spec(specification)
specification.loader.exec_module(tool)

CLIENT = tool.SOURCE / "client"
APP = tool.SOURCE / "app"


def test_the_resources_of_the_client_are_as_they_are_written():
    assert (CLIENT / "_async" / "resources.py").read_text() == tool.resources(CLIENT), (
        "run `make client`"
    )


def test_the_namespaces_of_the_app_are_as_they_are_written():
    assert (APP / "nouns.py").read_text() == tool.namespaces(APP), "run `make client`"


def test_a_module_without_a_namespace_is_no_noun():
    known = tool.nouns(APP, "Namespace")

    assert known["limits"] == "Limits"
    assert "job_functions" not in known
