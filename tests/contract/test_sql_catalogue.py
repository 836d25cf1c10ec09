"""SQL: every statement is in the catalogue and in use; none is written or built in Python."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainspring.db import statements
from mainspring.db.statements import Scope

PACKAGE = Path(__file__).parents[2] / "src" / "mainspring"
QUERY_FILES = sorted((PACKAGE / "sql" / "queries").glob("*.sql"))
MODULES = sorted(PACKAGE.rglob("*.py"))

# All lower or all upper case: a sentence that starts with "Select" or "Update" is not SQL.
SQL = re.compile(
    r"""
      ^\s* (?: select | SELECT ) \s
    | \b (?: select | SELECT ) \s .* \b (?: from | FROM ) \b
    | \b (?: insert \s+ into | INSERT \s+ INTO ) \b
    | \b (?: delete \s+ from | DELETE \s+ FROM ) \b
    | \b (?: update \s+ [\w.]+ \s+ set | UPDATE \s+ [\w.]+ \s+ SET ) \b
    """,
    re.DOTALL | re.VERBOSE,
)
SENDERS = {"SQL", "copy", "execute", "executemany", "fetch", "fetchrow", "fetchval", "stream"}
BUILDERS = {"format", "join", "replace"}


def called_name(call: ast.expr) -> str:
    match call:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
    return ""


def text_of(string: ast.JoinedStr) -> str:
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "x" for part in string.values
    )


def strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every string with its line, docstrings left out and an f-string taken as a whole."""
    nodes = list(ast.walk(tree))
    seen = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            seen |= {id(part) for part in node.values}
            yield node.lineno, text_of(node)
        elif (
            isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in seen
        ):
            yield node.lineno, node.value


def sql_lines(source: str) -> list[int]:
    return sorted(line for line, text in strings(ast.parse(source)) if SQL.search(text))


def is_built(node: ast.expr | None, built_names: set[str]) -> bool:
    """Whether the text is put together at run time; psycopg's own SQL(...).format() is not."""
    match node:
        case ast.JoinedStr(values=values):
            return any(isinstance(part, ast.FormattedValue) for part in values)
        case ast.BinOp(op=ast.Add() | ast.Mod()):
            return True
        case ast.Call(func=ast.Attribute(value=owner, attr=name)):
            in_pieces = name in BUILDERS and called_name(owner) != "SQL"
            return in_pieces or is_built(owner, built_names)
        case ast.Name(id=name):
            return name in built_names
    return False


def built_names(nodes: list[ast.AST]) -> set[str]:
    names = set()
    for node in nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if is_built(value, set()):
                names.add(name)
            case ast.AnnAssign(target=ast.Name(id=name), value=value) if is_built(value, set()):
                names.add(name)
            case ast.AugAssign(target=ast.Name(id=name), op=ast.Add()):
                names.add(name)
    return names


def statements_sent(nodes: list[ast.AST]) -> Iterator[ast.expr]:
    for node in nodes:
        if isinstance(node, ast.Call) and called_name(node) in SENDERS:
            yield from node.args[:1]
            yield from (keyword.value for keyword in node.keywords if keyword.arg == "query")


def building_lines(source: str) -> list[int]:
    """The lines where a text built at run time is sent to the database."""
    tree = ast.parse(source)
    constants = built_names(list(tree.body))
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    lines = set()
    for scope in (tree, *functions):
        nodes = list(ast.walk(scope))
        names = constants if scope is tree else constants | built_names(nodes)
        lines |= {sent.lineno for sent in statements_sent(nodes) if is_built(sent, names)}
    return sorted(lines)


def keys_looked_up(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Subscript(slice=ast.Constant(value=str(key))):
                yield key


def all_statements() -> list[statements.Statement]:
    return [each for path in QUERY_FILES for each in statements.load(path.stem).values()]


def test_there_is_a_catalogue():
    assert len(all_statements()) > 0


@pytest.mark.parametrize("path", QUERY_FILES, ids=lambda path: path.stem)
def test_every_statement_has_a_name_a_scope_and_prose(path):
    catalogue = statements.load(path.stem)

    assert len(catalogue) > 0
    for name, statement in catalogue.items():
        assert statement.name == name
        assert statement.scope in Scope
        assert len(statement.prose.split()) > 1, f"{name} is not explained"


def test_names_are_unique_across_files():
    names = Counter(statement.name for statement in all_statements())

    assert [name for name, count in names.items() if count > 1] == []


def test_every_statement_is_used_by_the_store():
    sources = [path.read_text() for path in (PACKAGE / "store").rglob("*.py")]
    used = {key for source in sources for key in keys_looked_up(source)}

    assert {statement.name for statement in all_statements()} - used == set()


# What the doctor advises is SQL that people copy; the domain can send nothing.
WITH_SQL = (PACKAGE / "db", PACKAGE / "domain" / "checks")


def test_no_sql_is_written_in_python_outside_db():
    outside = [
        path for path in MODULES if not any(path.is_relative_to(folder) for folder in WITH_SQL)
    ]
    found = {str(path.relative_to(PACKAGE)): sql_lines(path.read_text()) for path in outside}

    assert {name: lines for name, lines in found.items() if lines} == {}


def test_no_statement_is_built_from_strings():
    found = {str(path.relative_to(PACKAGE)): building_lines(path.read_text()) for path in MODULES}

    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "source",
    [
        "ping = 'select 1'",
        "query = '''\n  select job_id\n    from jobs'''",
        "query = 'with a as (select 1 from b) table a'",
        "query = 'INSERT INTO jobs VALUES (1)'",
        "query = 'delete from jobs'",
        "query = f'update {table} set state = 1'",
    ],
)
def test_sql_in_a_string_is_noticed(source):
    assert sql_lines(source) == [1]


@pytest.mark.parametrize(
    "source",
    [
        "'''select 1 from a docstring'''",
        "def read():\n    '''insert into nothing'''",
        "help = 'Select a job from the list, or update it: set its priority'",
        "state = 'deleted from the queue'",
        "word = 'select'",
    ],
)
def test_prose_is_not_taken_for_sql(source):
    assert sql_lines(source) == []


@pytest.mark.parametrize(
    "source",
    [
        "tx.execute(f'listen {channel}')",
        "tx.execute('listen ' + channel)",
        "tx.execute('listen %s' % channel)",
        "tx.execute('listen {}'.format(channel))",
        "tx.execute(query=' '.join(parts))",
        "tx.execute(f'listen {channel}'.encode())",
        "tx.execute(SQL(f'listen {channel}'))",
        "async def listen(tx):\n    text = f'listen {channel}'\n    await tx.execute(text)",
        "def listen(tx):\n    text = 'listen '\n    text += channel\n    tx.execute(text)",
        "TEXT: str = 'listen ' + CHANNEL\ndef listen(tx):\n    tx.execute(TEXT)",
    ],
)
def test_a_built_statement_is_noticed(source):
    assert building_lines(source) == [len(source.split("\n"))]


@pytest.mark.parametrize(
    "source",
    [
        "tx.execute(QUERIES['claim'].sql, {'n': n + 1})",
        "tx.execute('listen a' ' b')",
        "tx.execute(SQL('listen {}').format(Identifier(channel)))",
        "def a():\n    text = f'{b}'\n\ndef c(tx, text):\n    tx.execute(text)",
    ],
)
def test_a_static_statement_passes(source):
    assert building_lines(source) == []
