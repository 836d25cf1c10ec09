"""The folders of the stored functions: each holds one kind, and what is public is documented."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SQL = ROOT / "src" / "mainspring" / "sql"
GUIDES = "\n".join(path.read_text() for path in sorted((ROOT / "docs" / "guides").glob("*.md")))
FOLDERS = ("internal", "views", "triggers", "public", "final")
LONGEST_FILE = 400
CREATED = re.compile(
    r"^create or replace (function|view|trigger) (?:mainspring\.)?(\w+)"
    r"(?:\([^$]*?\)\s+returns (trigger)\b)?",
    re.MULTILINE,
)
COMMENT = "select obj_description(%s::regproc, 'pg_proc')"
# A plan that needs what is off costs 1e10, for which JIT would compile all of it.
COMPILED = """
select proname from pg_proc
 where pronamespace = 'mainspring'::regnamespace and array_to_string(proconfig, ' ') ~ 'enable_'
   and not 'jit=off' = any (proconfig)
"""
RIGHTS = "select prosecdef, proconfig from pg_proc where oid = %s::regproc"
# They write definitions, which run under a role of whoever writes them.
AS_CALLER = {"schedule_function"}


def created(text: str) -> list[tuple[str, str]]:
    """Kind and name of what a file creates; the kind of a trigger's function is `trigger` too."""
    return [(returns or kind, name) for kind, name, returns in CREATED.findall(text)]


def created_in(folder: str) -> list[tuple[str, str]]:
    files = sorted((SQL / folder).glob("*.sql"))
    assert files
    return [each for path in files for each in created(path.read_text())]


PUBLIC = [name for _, name in created_in("public")]


@pytest.mark.parametrize(
    ("folder", "kinds"),
    [
        ("internal", {"function"}),
        ("views", {"view"}),
        ("triggers", {"trigger"}),
        ("public", {"function"}),
        ("final", set()),
    ],
)
def test_a_folder_holds_one_kind_of_object(folder, kinds):
    assert {kind for kind, _ in created_in(folder)} == kinds


def test_nothing_is_created_twice():
    names = [each for folder in FOLDERS for each in created_in(folder)]

    assert len(names) == len(set(names))


def test_no_file_is_longer_than_400_lines():
    lengths = {
        str(path.relative_to(SQL)): len(path.read_text().splitlines())
        for folder in FOLDERS
        for path in (SQL / folder).glob("*.sql")
    }

    assert {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE} == {}


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_function_is_commented_and_runs_as_the_owner(connection, name):
    (comment,) = connection.execute(COMMENT, (f"mainspring.{name}",)).fetchone()
    as_owner, settings = connection.execute(RIGHTS, (f"mainspring.{name}",)).fetchone()

    assert comment
    if name in AS_CALLER:
        assert not as_owner
        return
    assert as_owner
    assert any(setting.startswith("search_path=pg_catalog") for setting in settings)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_function_is_in_the_guides(name):
    assert re.search(rf"\bmainspring\.{name}\b", GUIDES)


def test_a_function_that_chooses_its_plans_compiles_none(connection):
    assert connection.execute(COMPILED).fetchall() == []


def test_the_function_of_a_trigger_is_of_the_kind_trigger():
    text = (
        "create or replace function mainspring.touch()\nreturns trigger\nlanguage plpgsql\n"
        "as $$ begin end $$;\n"
        "create or replace trigger limits_touch before update on mainspring.limits;\n"
        "create or replace function mainspring.wake(\n    queue text default now()\n)\n"
        "returns void\nas $$ begin end $$;\n"
        "create or replace view mainspring.job_status as\n"
    )

    assert created(text) == [
        ("trigger", "touch"),
        ("trigger", "limits_touch"),
        ("function", "wake"),
        ("view", "job_status"),
    ]
