"""The guides to limits, approvals and flows can be followed beside a worker."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import psycopg
import pytest

from mainspring import Context, Mainspring
from tests.contract.test_docs import ROOT
from tests.contract.test_examples import block_commands, run
from tests.support.waiting import await_until
from tests.support.workers import working

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
GUIDES = ROOT / "docs" / "guides"


def blocks(page: str) -> list[tuple[str, str]]:
    """The examples of a page, each with its language."""
    return BLOCK.findall((GUIDES / page).read_text())


async def follow(
    examples: list[tuple[str, str]],
    app: Mainspring,
    *,
    folder: Path,
    names: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Do what the examples say, top to bottom; the names that their Python leaves."""
    names = {"app": app, "Context": Context} if names is None else names
    for language, text in examples:
        if language == "python":
            await execute(text, names)
            await app.aregister_definitions()
        elif language == "sql":
            with psycopg.connect(app.database.url, autocommit=True) as connection:
                connection.execute(text.encode())
        else:
            for words in block_commands(text):
                run(words, folder, app.database.url)
    return names


async def execute(source: str, names: dict[str, Any]) -> None:
    code = compile(source, "guide", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    answer = eval(code, names)
    if inspect.isawaitable(answer):
        await answer


@pytest.fixture
async def app(database_url: str) -> Any:
    async with Mainspring(database_url) as app:
        yield app


async def test_the_guide_to_limits_can_be_followed(app, connection, tmp_path):
    await follow(blocks("limits.md"), app, folder=tmp_path)

    async with working(app):

        async def is_done() -> bool:
            return all(job.is_final for job in await app.jobs.alist())

        await await_until(is_done)
    state = await app.limits.aget("openai")
    assert (state.limit.concurrency, str(state.limit.rate)) == (2, "30/minute")
    row = connection.execute("select max_running from mainspring.tenants where tenant_id = 'acme'")
    assert row.fetchone() == (10,)


async def test_the_guide_to_approvals_can_be_followed(app, tmp_path, capsys):
    names = await follow(blocks("approvals.md"), app, folder=tmp_path)

    async with working(app):
        assert await names["job"].aresult(10) == "acme erased"
    assert "erase_tenant {'tenant': 'acme'} 2" in capsys.readouterr().out


async def test_the_guide_to_flows_can_be_followed(app, tmp_path, capsys):
    first, *rest = blocks("flows.md")
    names = await follow([first], app, folder=tmp_path)
    # A worker knows what was declared before it started.
    async with working(app):
        await follow(rest, app, folder=tmp_path, names=names)

        assert await names["total"].aresult(10) == 43
    assert "63" in capsys.readouterr().out
