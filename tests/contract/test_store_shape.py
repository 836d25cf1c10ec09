"""Shape of the store: a function runs its statement on a session, or only says it as a `Call`."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

STORE = Path(__file__).parents[2] / "src" / "mainspring" / "store"
MODULES = sorted(STORE.glob("*.py"))
ROWS = sorted((STORE / "rows").glob("*.py"))
# A connection of psycopg is a session; these need more of it: COPY, a transaction to roll back, or
# another kind of cursor.
WITH_CONNECTION = {
    "bulk_enqueue.enqueue": "Connection[Any]",
    "bulk_enqueue.aenqueue": "AsyncConnection[Any]",
    "conditions.find_problem": "AsyncConnection[Any]",
    "conditions.first_value": "AsyncConnection[Any]",
    "sql_functions.call": "AsyncConnection[Any]",
}
CONNECTIONS = {"Session", "Connection[Any]", "AsyncConnection[Any]"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def public_functions(source: str) -> Iterator[Function]:
    for node in ast.parse(source).body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            yield node


def annotations(function: Function) -> list[str]:
    """Those of the parameters, in order."""
    given = function.args
    parameters = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    return [ast.unparse(each.annotation) if each.annotation else "" for each in parameters]


def runs_its_statement(function: Function, session: str = "Session") -> bool:
    first, *rest = annotations(function) or [""]
    is_async = isinstance(function, ast.AsyncFunctionDef) or session == "Connection[Any]"
    return is_async and first == session and not CONNECTIONS & set(rest) and not says(function)


def says_its_statement(function: Function) -> bool:
    is_plain = isinstance(function, ast.FunctionDef)
    return is_plain and says(function) and not CONNECTIONS & set(annotations(function))


def says(function: Function) -> bool:
    return function.returns is not None and ast.unparse(function.returns) == "Call"


def misshapen(source: str, module: str) -> Iterator[str]:
    for function in public_functions(source):
        name = f"{module}.{function.name}"
        session = WITH_CONNECTION.get(name, "Session")
        if not runs_its_statement(function, session) and not says_its_statement(function):
            yield name


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_store_function_has_one_of_the_two_shapes(path):
    assert list(misshapen(path.read_text(), path.stem)) == []


def test_what_needs_more_of_a_connection_than_a_session_has_exists():
    known = {
        f"{path.stem}.{each.name}"
        for path in MODULES
        for each in public_functions(path.read_text())
    }
    assert WITH_CONNECTION.keys() - known == set()


@pytest.mark.parametrize("path", ROWS, ids=lambda path: path.stem)
def test_readers_of_rows_run_no_statement(path):
    imported = {
        node.module
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom)
    }
    assert not any(str(module).startswith(("mainspring.db", "psycopg")) for module in imported)


@pytest.mark.parametrize(
    "function",
    [
        "async def get(session: Session, name: str) -> Job | None: ...",
        "def cancel(name: str) -> Call: ...",
        "def keys() -> Call: ...",
        "def _reader(row: tuple[Any, ...]) -> Job: ...",
    ],
)
def test_both_shapes_and_private_readers_pass(function):
    assert list(misshapen(function, "jobs")) == []


@pytest.mark.parametrize(
    "function",
    [
        "def read(row: tuple[Any, ...]) -> Job: ...",
        "def get(session: Session, name: str) -> Job: ...",
        "async def get(name: str, session: Session) -> Job: ...",
        "async def get(connection: AsyncConnection[Any], name: str) -> Job: ...",
        "def renew(connection: Connection[Any]) -> bool: ...",
        "async def get(session, name): ...",
        "async def get(session: Session) -> Call: ...",
        "async def keys() -> Call: ...",
        "def get(session: Session) -> Call: ...",
        "def cancel(name: str) -> Call | None: ...",
    ],
)
def test_any_third_shape_is_noticed(function):
    assert list(misshapen(function, "jobs")) != []
