"""The requests that `test_openapi.py` sends: what the OpenAPI document says is answered, to every
role, and nothing else.

They are apart from the other tests because they are made while they are collected, which takes
seconds, and each of the processes that share the tests collects all of them."""

import asyncio
import os
import threading
from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import psycopg
import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.generation.meta import CaseMetadata, TestPhase

from mainspring.api.app import create_app
from mainspring.api.server import Server
from mainspring.db.database import Database
from mainspring.db.template_databases import fresh_database
from mainspring.domain.access.roles import Role
from mainspring.settings import load
from tests.support.api import serving

EXAMPLES = 3
# How many values of one kind are sent of each field; `make soak` sends all.
EVERY_VALUE = "MAINSPRING_TEST_EVERY_VALUE"
MOST_OF_A_KIND = 1_000_000 if os.environ.get(EVERY_VALUE) else 1
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


def described() -> schemathesis.BaseSchema:
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    # What a document can name but not know: whether there is such a definition or instant.
    schema.config.checks.positive_data_acceptance.expected_statuses = ["2xx", "4xx"]
    return schema


@pytest.fixture(scope="module")
def sent() -> Counter[Hashable]:
    """How many requests of each kind were sent."""
    return Counter()


@described().parametrize()
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
def test_every_answer_to_every_role_is_one_that_the_document_names(
    case: Case, running: Running, sent: Counter[Hashable]
):
    assert case.meta is not None
    kind = kind_of(case, case.meta)
    sent[kind] += 1
    if sent[kind] <= MOST_OF_A_KIND or is_one_of_few(case.meta):
        ask(case, running, Role.OPERATOR)
    if is_one_of_few(case.meta):
        for role in sorted(set(Role) - {Role.OPERATOR}):
            ask(case, running, role)


def is_one_of_few(meta: CaseMetadata) -> bool:
    """Not one of the thousands that try each kind of value in each field."""
    return meta.phase.name is not TestPhase.COVERAGE


def kind_of(case: Case, meta: CaseMetadata) -> Hashable:
    """What is wrong or unusual, and where; the values differ."""
    where = (getattr(meta.phase.data, name, None) for name in ("scenario", "location", "parameter"))
    return case.operation.label, meta.generation.mode, *where


def ask(case: Case, running: Running, role: Role) -> None:
    token = running.tokens["*" if role is Role.OPERATOR else "default", role]
    case.call_and_validate(base_url=running.url, headers={"Authorization": f"Bearer {token}"})
