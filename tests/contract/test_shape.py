"""Shape: modules and functions stay small, have honest names, and hide no failure."""

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "mainspring"
SOURCES = sorted(path for path in PACKAGE.rglob("*") if path.suffix in {".py", ".sql"})
MODULES = [path for path in SOURCES if path.suffix == ".py"]

LONGEST_MODULE = 400
LONGEST_FUNCTION = 60
VAGUE_NAMES = {"common", "helper", "helpers", "manager", "managers", "misc", "util", "utils"}
CATCH_ALL = {"BaseException", "Exception"}
LEFT_OPEN = re.compile(r"\b(TODO|FIXME|XXX)\b")


def too_long(source: str) -> Iterator[str]:
    lines = len(source.splitlines())
    if lines > LONGEST_MODULE:
        yield f"{lines} lines"


def long_functions(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > LONGEST_FUNCTION:
                yield f"{node.name} has {lines} lines"


def catches_all(kind: ast.expr | None) -> bool:
    match kind:
        case None:
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in CATCH_ALL
        case ast.Tuple(elts=kinds):
            return any(catches_all(each) for each in kinds)
    return False


def is_idle(body: list[ast.stmt]) -> bool:
    """Whether nothing is done: only `pass`, `...`, `continue` or a bare string."""
    return all(
        isinstance(node, ast.Pass | ast.Continue)
        or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in body
    )


def swallowed_errors(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ExceptHandler(type=kind, body=body) if catches_all(kind) and is_idle(body):
                yield f"line {node.lineno} drops every error"
            case ast.Call(func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=args):
                if any(catches_all(each) for each in args):
                    yield f"line {node.lineno} suppresses every error"


def left_open(source: str) -> Iterator[str]:
    for number, line in enumerate(source.splitlines(), start=1):
        if LEFT_OPEN.search(line):
            yield f"line {number}: {line.strip()}"


def vague_parts(path: Path) -> list[str]:
    return [part for part in path.with_suffix("").parts if part.strip("_") in VAGUE_NAMES]


Check = Callable[[str], Iterator[str]]


@pytest.mark.parametrize("check", [too_long, long_functions, swallowed_errors])
def test_every_module_keeps_its_shape(check: Check):
    found = {str(path.relative_to(PACKAGE)): list(check(path.read_text())) for path in MODULES}

    assert MODULES
    assert {name: problems for name, problems in found.items() if problems} == {}


def test_nothing_is_left_open():
    found = {str(path.relative_to(PACKAGE)): list(left_open(path.read_text())) for path in SOURCES}

    assert {name: problems for name, problems in found.items() if problems} == {}


def test_no_module_has_a_name_that_says_nothing():
    assert [path for path in MODULES if vague_parts(path.relative_to(PACKAGE))] == []


def test_a_module_may_have_400_lines_and_not_401():
    assert list(too_long("x = 1\n" * 400)) == []
    assert list(too_long("x = 1\n" * 401)) == ["401 lines"]


@pytest.mark.parametrize("keyword", ["def", "async def"])
def test_a_function_may_have_60_lines_and_not_61(keyword):
    assert list(long_functions(f"{keyword} f():\n" + "    x = 1\n" * 59)) == []
    assert list(long_functions(f"{keyword} f():\n" + "    x = 1\n" * 60)) == ["f has 61 lines"]


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    x()\nexcept Exception:\n    pass",
        "try:\n    x()\nexcept:\n    ...",
        "for y in z:\n  try:\n    x()\n  except (OSError, BaseException):\n    continue",
        "with contextlib.suppress(Exception):\n    x()",
        "with suppress(OSError, Exception):\n    x()",
    ],
)
def test_a_swallowed_error_is_noticed(source):
    assert len(list(swallowed_errors(source))) == 1


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    x()\nexcept OSError:\n    pass",
        "try:\n    x()\nexcept Exception:\n    log()",
        "with contextlib.suppress(OSError):\n    x()",
    ],
)
def test_an_error_that_is_named_or_handled_passes(source):
    assert list(swallowed_errors(source)) == []


def test_what_is_left_open_is_noticed():
    assert list(left_open("x = 1  # TODO: y\nTODOS = 2")) == ["line 1: x = 1  # TODO: y"]


@pytest.mark.parametrize("name", ["utils.py", "db/helpers.py", "_common.py", "manager/jobs.py"])
def test_a_vague_name_is_noticed(name):
    assert len(vague_parts(Path(name))) == 1
    assert vague_parts(Path("db/pool.py")) == []
