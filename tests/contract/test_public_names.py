"""Public names: `mainspring.__all__` is sorted, and it is exactly what the package offers."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mainspring

SOURCE = Path(mainspring.__file__).read_text()


def bound_names(source: str) -> Iterator[str]:
    """The names a module's top level binds, whether it defines or imports them."""
    for node in ast.parse(source).body:
        match node:
            case ast.ImportFrom(module="__future__"):
                continue
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name


def public_names(source: str) -> set[str]:
    return {name for name in bound_names(source) if not name.startswith("_")}


def order(name: str) -> tuple[bool, bool, str]:
    """Constants, then classes, then the rest: the order the linter sorts `__all__` in."""
    return not name.isupper(), not name[0].isupper(), name


def test_the_public_names_are_sorted_and_named_once():
    assert list(mainspring.__all__) == sorted(set(mainspring.__all__), key=order)


@pytest.mark.parametrize("name", mainspring.__all__)
def test_every_public_name_can_be_imported(name):
    assert getattr(mainspring, name) is not None


def test_every_name_the_package_binds_is_public_or_underscored():
    assert public_names(SOURCE) - set(mainspring.__all__) == set()


def test_every_way_to_bind_a_name_is_noticed():
    source = """
from __future__ import annotations
import a, b.c, d as e
from f import g, h as i, _j
K = L = 1
m: int = 2
def n(): ...
async def o(): ...
class P: ...
"""

    assert public_names(source) == {"a", "b", "e", "g", "i", "K", "L", "m", "n", "o", "P"}
