"""Layers: import-linter holds them, without exceptions, and the domain is pure."""

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mainspring"
DOMAIN = PACKAGE / "domain"
LINT = "import importlinter.cli as c; raise SystemExit(c.lint_imports(no_cache=True, no_logo=True))"


def linter_config() -> dict[str, Any]:
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text())
    config: dict[str, Any] = pyproject["tool"]["importlinter"]
    return config


def exceptions(config: dict[str, Any]) -> Iterator[str]:
    """Every option that would let an import pass unseen, by contract name."""
    for contract in config["contracts"]:
        for option in contract:
            if option == "allow_indirect_imports" or "ignore" in option:
                yield f"{contract['name']}: {option}"


def drawn_layers(page: str) -> list[set[str]]:
    """The lines of the figure, from the top; what stands beside a layer's name is prose."""
    figure = page.partition("```\ncli ")[2].partition("```")[0]
    return [set(re.split(r"\s{2,}", line)[0].split(" | ")) for line in f"cli {figure}".splitlines()]


def enforced_layers(config: dict[str, Any]) -> list[set[str]]:
    layers = next(each["layers"] for each in config["contracts"] if each["type"] == "layers")
    return [set(layer.replace("mainspring.", "").split(" | ")) for layer in layers]


def imported_modules(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


# Arithmetic of time that nobody should write again; neither reads a file, a clock or a network.
ARITHMETIC = frozenset({"cronsim", "holidays", "jsonschema_rs"})


def is_pure(module: str) -> bool:
    in_domain = module == "mainspring.domain" or module.startswith("mainspring.domain.")
    top = module.partition(".")[0]
    return in_domain or top in sys.stdlib_module_names or top in ARITHMETIC


def impure_imports(source: str) -> list[str]:
    return [module for module in imported_modules(source) if not is_pure(module)]


def test_every_import_respects_the_layers():
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [sys.executable, "-c", LINT],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_the_layers_have_no_exceptions():
    assert list(exceptions(linter_config())) == []


def test_the_figure_in_contributing_shows_every_package_in_its_layer():
    drawn = drawn_layers((ROOT / "CONTRIBUTING.md").read_text())
    names = set().union(*drawn)
    enforced = [layer & names for layer in enforced_layers(linter_config())]

    assert {path.parent.name for path in PACKAGE.glob("*/__init__.py")} <= names
    assert drawn == [layer for layer in enforced if layer]


@pytest.mark.parametrize(
    "option", ["ignore_imports", "exhaustive_ignores", "allow_indirect_imports"]
)
def test_an_exception_to_the_layers_is_noticed(option):
    config = {"contracts": [{"name": "layers", "type": "layers", option: ["a -> b"]}]}

    assert list(exceptions(config)) == [f"layers: {option}"]


def test_the_domain_imports_only_itself_the_standard_library_and_pure_arithmetic():
    impure = {
        path.name: found
        for path in DOMAIN.rglob("*.py")
        if (found := impure_imports(path.read_text()))
    }

    assert impure == {}


@pytest.mark.parametrize(
    "source",
    [
        "import orjson",
        "from psycopg.rows import dict_row",
        "def late():\n    import typer",
        "from mainspring.db import pool",
        "from mainspring import settings",
        "from .. import db",
    ],
)
def test_an_impure_import_is_noticed(source):
    assert len(impure_imports(source)) == 1
