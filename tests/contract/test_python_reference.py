"""The reference of the Python interface: written from the code, complete and current."""

import importlib.util
import re
from types import ModuleType

import pytest

import mainspring
from tests.contract.test_docs import ROOT


@pytest.fixture(scope="module")
def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "write_python_reference", ROOT / "tools" / "write_python_reference.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(writer):
    assert writer.PAGE.read_text() == writer.page(), "run `make reference`"


def test_every_public_name_has_an_entry_or_is_an_error(writer):
    page = writer.PAGE.read_text()
    errors = (ROOT / "docs" / "reference" / "errors.md").read_text()

    missing = [name for name in mainspring.__all__ if f"`{name}`" not in page + errors]

    assert missing == []


def test_every_link_of_the_table_leads_to_a_heading(writer):
    page = writer.PAGE.read_text()
    headings = {writer.anchor(found) for found in re.findall(r"^#+ (.*)$", page, re.MULTILINE)}

    links = set(re.findall(r"\]\(#([^)]*)\)", page))

    assert links - headings == set()
