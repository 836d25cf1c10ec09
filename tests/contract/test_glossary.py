"""Names: no module, class, function, argument, table, column or statement uses a word that the
glossary gives up for another."""

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mainspring"
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text()
SQL = sorted((PACKAGE / "sql").rglob("*.sql"))
MODULES = sorted(PACKAGE.rglob("*.py"))

PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
SQL_NAME = re.compile(r"[a-z_][a-z_0-9]*")
SQL_COMMENT = re.compile(r"--.*")
SQL_TEXT = re.compile(r"'(?:[^']|'')*'")


def forbidden() -> dict[str, str]:
    """The words that names must not have, and what to say instead."""
    table = GLOSSARY.partition("## Not these")[2]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.MULTILINE)
    return {word: better for words, better in rows[1:] for word in words.split(", ")}


def names_in(node: ast.AST) -> Iterable[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return (name,)
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
            return (name,)
        case ast.keyword(arg=str(name)):
            return (name,)
    return ()


def python_names(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    return {path.stem, *(name for node in ast.walk(tree) for name in names_in(node))}


def sql_names(path: Path) -> set[str]:
    code = SQL_TEXT.sub("''", SQL_COMMENT.sub("", path.read_text()))
    statements = re.findall(r"-- name: (\w+)", path.read_text())
    return {path.stem, *SQL_NAME.findall(code), *statements}


def misused(names: Iterable[str]) -> Iterator[str]:
    words = forbidden()
    for name in sorted(names):
        if name in words:
            yield f"{name}: say {words[name]}"
        else:
            parts = {part.lower() for part in PART.findall(name)}
            yield from (f"{name}: say {words[part]}" for part in sorted(parts & words.keys()))


def test_the_glossary_lists_words_to_leave_alone():
    assert forbidden()["strangers"] == "unknown definitions"


@pytest.mark.parametrize(
    ("files", "names"), [(MODULES, python_names), (SQL, sql_names)], ids=["python", "sql"]
)
def test_no_name_uses_a_word_that_the_glossary_gave_up(files, names):
    found = {str(path.relative_to(PACKAGE)): list(misused(names(path))) for path in files}

    assert files
    assert {name: problems for name, problems in found.items() if problems} == {}


@pytest.mark.parametrize("name", ["Door", "front_doors", "_tell_all", "isSealed", "HEAR"])
def test_a_word_is_found_inside_a_name(name):
    assert len(list(misused([name]))) == 1


@pytest.mark.parametrize("name", ["indoor_plants", "wallet", "mushroom", "newsletter", "hearing"])
def test_a_longer_word_is_another_word(name):
    assert list(misused([name])) == []
