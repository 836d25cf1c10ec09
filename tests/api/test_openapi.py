"""The OpenAPI document is the truth: what it says is answered, to every role, and nothing else."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import psycopg
import pytest
import schemathesis
from hypothesis import HealthCheck, settings

from mainspring.api.app import create_app
from mainspring.api.server import Server
from mainspring.db.database import Database
from mainspring.db.template_databases import fresh_database
from mainspring.domain.access.roles import Role
from mainspring.settings import load
from tests.support.api import serving

EXAMPLES = 3
Case: TypeAlias = schemathesis.Case[Any]


@dataclass
class Running:
    """A server in a thread, and a token for each role."""

    url: str
    tokens: dict[tuple[str, Role], str]


@pytest.fixture(scope="module")
def running(server_url: str) -> Iterator[Running]:
    with fresh_database(server_url) as database_url:
        with psycopg.connect(database_url, autocommit=True) as connection:
            connection.execute(
                "insert into mainspring.definitions (key, kind) values ('work', 'python')"
            )
        ready, ended = threading.Event(), threading.Event()
        found: list[Running] = []

        async def serve() -> None:
            async with serving(database_url, requests_per_minute=0) as api:
                server = Server(api.app, host="127.0.0.1", port=0)
                task = asyncio.create_task(server.run())
                api.app.state.server.hub.close()  # Streams end at once.
                found.append(Running(server.url, api.tokens))
                ready.set()
                await asyncio.to_thread(ended.wait)
                server.stop()
                await task

        thread = threading.Thread(target=asyncio.run, args=(serve(),))
        thread.start()
        assert ready.wait(20)
        yield found[0]
        ended.set()
        thread.join()


DOCUMENT = create_app(
    Database(load(database_url="postgresql://nowhere/nothing")), version="test"
).openapi()


def described(*, is_thorough: bool) -> schemathesis.BaseSchema:
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.config.phases.coverage.enabled = is_thorough
    # What a document can name but not know: whether there is such a definition or instant.
    schema.config.checks.positive_data_acceptance.expected_statuses = ["2xx", "4xx"]
    return schema


thorough, light = described(is_thorough=True), described(is_thorough=False)
few = settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@thorough.parametrize()
@few
def test_every_answer_is_one_that_the_document_names(case: Case, running: Running):
    ask(case, running, Role.OPERATOR)


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.OPERATOR])
@light.parametrize()
@few
def test_the_same_is_true_for_every_role(case: Case, running: Running, role: Role):
    ask(case, running, role)


def ask(case: Case, running: Running, role: Role) -> None:
    token = running.tokens["*" if role is Role.OPERATOR else "default", role]
    case.call_and_validate(base_url=running.url, headers={"Authorization": f"Bearer {token}"})
