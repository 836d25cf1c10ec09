"""Examples in the documents do what they say: they are run as they are printed."""

import ast
import asyncio
import os
import re
import shlex
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType

import psycopg
import pytest

from mainspring import Mainspring
from mainspring.testing import inline
from tests.contract.test_docs import PAGES, ROOT, python_blocks
from tests.support.commands import Done, clean_environment, mainspring, run_python
from tests.support.processes import WorkerProcess

START = (ROOT / "docs" / "start.md").read_text()
GUIDES = ROOT / "docs" / "guides"
BLOCK = r"^```{}\n(.*?)^```"
ENDLESS = ("up", "worker", "scheduler")


def blocks(language: str, text: str) -> list[str]:
    return re.findall(BLOCK.format(language), text, re.DOTALL | re.MULTILINE)


def commands(text: str) -> list[list[str]]:
    """The `mainspring ...` commands of a document, without those that go on for ever."""
    return [words for block in blocks("sh", text) for words in block_commands(block)]


def block_commands(block: str) -> list[list[str]]:
    """Each without its first word; a backslash carries one on to the next line."""
    lines = block.replace("\\\n", " ").splitlines()
    found = [shlex.split(line, comments=True) for line in lines if line.startswith("mainspring ")]
    return [words[1:] for words in found if words[1] not in ENDLESS]


def run(words: list[str], folder: Path, url: str) -> Done:
    done = mainspring(*words, cwd=folder, MAINSPRING_DATABASE_URL=url)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_first_job_runs_as_printed(page, database_url, tmp_path):
    text = (ROOT / page).read_text()
    assert "\nmainspring up --app jobs:app\n" in text
    (tmp_path / "jobs.py").write_text(next(python_blocks(text)))
    environment = clean_environment(MAINSPRING_DATABASE_URL=database_url)
    up = WorkerProcess(["up", "--app", "jobs:app"], environment, tmp_path / "up.log", tmp_path)
    try:
        with psycopg.connect(database_url, autocommit=True) as connection:
            up.started(connection)
        outputs = [run(words, tmp_path, database_url).stdout for words in commands(text)]
    finally:
        up.end()

    assert outputs[0] == '"Hello, Ada!"\n'
    assert any("succeeded" in output and "greet" in output for output in outputs)


def test_the_program_of_the_start_page_gets_its_result(database_url, tmp_path):
    jobs, program, _ = python_blocks(START)
    (tmp_path / "jobs.py").write_text(jobs)
    (tmp_path / "program.py").write_text(program)
    environment = {"MAINSPRING_DATABASE_URL": database_url}
    log = tmp_path / "worker.log"
    words = ["worker", "--app", "jobs:app"]
    worker = WorkerProcess(words, clean_environment(**environment), log, tmp_path)
    try:
        done = run_python(["program.py"], environment, cwd=tmp_path)
    finally:
        worker.end()

    assert done.stdout == "1\nHello, Ada!\n", done.stderr


@pytest.mark.parametrize("page", ["docs/start.md", "docs/guides/testing.md"])
def test_the_tests_of_the_documents_pass(page, tmp_path):
    for source in python_blocks((ROOT / page).read_text()):
        name = "jobs.py" if "= Mainspring()" in source else "test_jobs.py"
        (tmp_path / ("conftest.py" if "@pytest.fixture" in source else name)).write_text(source)
    installed = "mainspring.testing" in {point.value for point in entry_points(group="pytest11")}
    plugin = [] if installed else ["-p", "mainspring.testing"]
    options = "-q -p no:cacheprovider -o asyncio_mode=auto --rootdir=."

    done = run_python(["-m", "pytest", *options.split(), *plugin], os.environ, cwd=tmp_path)

    assert re.search(r"^[13] passed", done.stdout, re.MULTILINE), done.stdout + done.stderr


def runnable(source: str, page: str) -> CodeType:
    code: CodeType = compile(source, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    return code


async def test_the_python_guide_runs_from_top_to_bottom(database_url, connection, monkeypatch):
    monkeypatch.setenv("MAINSPRING_DATABASE_URL", database_url)
    monkeypatch.setitem(sys.modules, "guide", type(sys)("guide"))
    connection.execute("create table users (id int); create table accounts (id int, balance int)")
    declaring, *using = python_blocks((GUIDES / "python.md").read_text())
    names: dict[str, object] = {"__name__": "guide"}
    exec(runnable(declaring, "python.md"), names)
    app = names["app"]
    assert isinstance(app, Mainspring)
    try:
        with inline(app):
            for source in using:
                waiting = eval(runnable(source, "python.md"), names)
                if asyncio.iscoroutine(waiting):
                    await waiting
    finally:
        await app.aclose()

    assert connection.execute("select count(*) from users").fetchone() == (1,)


@pytest.mark.parametrize("page", ["guides/sql.md", "operations.md"])
def test_the_sql_of_the_documents_runs_from_top_to_bottom(page, database_url, connection):
    with Mainspring(database_url) as app:
        app.job(key="send_welcome")(lambda user_id: None)
        app.register_definitions()
    connection.execute("begin")  # Roles belong to the server, so nothing may stay.
    for block in blocks("sql", (ROOT / "docs" / page).read_text()):
        connection.execute(re.sub(r"^(begin|commit);$", "", block, flags=re.MULTILINE).encode())
    connection.execute("rollback")


def test_examples_that_fail_are_noticed(database_url, tmp_path, connection):
    text = "```sh\nmainspring up\nmainspring jobs \\\n    list  # all\n```\n"
    assert commands(text) == [["jobs", "list"]]
    with pytest.raises(AssertionError, match="unknown definition"):
        run(["enqueue", "nothing"], tmp_path, database_url)
    with pytest.raises(NameError):
        exec(runnable("undefined()", "page.md"), {})


def test_the_readme_stays_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < 150


LINK = re.compile(r"\]\(([^)#\s:]*)(?:#([^)\s]*))?\)")


def dead_links(page: Path) -> list[str]:
    """Links to files that are not there, or to headings that are not in them."""
    dead = []
    for target, heading in LINK.findall(page.read_text()):
        path = (page.parent / target) if target else page
        if not path.exists() or (heading and heading not in anchors(path.read_text())):
            dead.append(f"{target}#{heading}")
    return dead


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page):
    assert dead_links(page) == []


def test_a_dead_link_is_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# A `b`\n[a](#a-b) [b](page.md#c) [c](gone.md) [d](https://example.com)\n")

    assert dead_links(page) == ["page.md#c", "gone.md#"]
