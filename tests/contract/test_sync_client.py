"""The blocking client is what the tool writes from the async one."""

import importlib.util
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
CLIENT = ROOT / "src" / "mainspring" / "client"
specification = importlib.util.spec_from_file_location(
    "write_sync_client", ROOT / "tools" / "write_sync_client.py"
)
assert specification is not None
assert specification.loader is not None
tool = importlib.util.module_from_spec(specification)
specification.loader.exec_module(tool)


def read_all(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.glob("*.py")}


def test_the_blocking_client_is_as_it_is_written(tmp_path):
    shutil.copytree(CLIENT / "_async", tmp_path / "_async")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)

    tool.write(tmp_path)

    assert read_all(CLIENT / "_sync") == read_all(tmp_path / "_sync"), "run `make client`"
