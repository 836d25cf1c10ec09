"""The async client is what the tool writes from the blocking one."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
specification = importlib.util.spec_from_file_location(
    "write_async_client", ROOT / "tools" / "write_async_client.py"
)
assert specification is not None
assert specification.loader is not None
tool = importlib.util.module_from_spec(specification)
specification.loader.exec_module(tool)


@pytest.mark.parametrize("name", tool.FILES)
def test_the_async_client_is_as_it_is_written(name):
    folder = ROOT / "src" / "mainspring" / "client"

    written = tool.tidy(tool.write((folder / name).read_text()))

    assert (folder / tool.FILES[name]).read_text() == written, "run `make client`"
