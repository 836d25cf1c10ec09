"""The hooks before a commit are the checks of `make check`."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_the_hooks_run_what_make_check_runs():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())
    hooks = [hook["entry"] for repository in config["repos"] for hook in repository["hooks"]]

    assert hooks == _recipe("check")


def test_a_hook_downloads_nothing():
    config = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())

    for repository in config["repos"]:
        assert repository["repo"] == "local"
        assert {hook["language"] for hook in repository["hooks"]} == {"system"}


def _recipe(target: str) -> list[str]:
    found = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    assert found
    return [line.lstrip("\t@") for line in found[1].splitlines()]
