"""What is kept of a create that came with a key, so that it can be recognised."""

import hashlib

import psycopg
import pytest

from mainspring.services.secrets import generate_key
from mainspring.settings import load
from tests.support.api import Api, serving

OLD, NEW = generate_key(), generate_key()
KEY = {"Idempotency-Key": "nightly-1"}
BODY = '{{"name": "s", "definition": "work", "cron": "@daily", "payload": {{"pin": "{:04}"}}}}'


@pytest.fixture(autouse=True)
def work(connection: psycopg.Connection) -> None:
    connection.execute("insert into mainspring.definitions (key, kind) values ('work', 'python')")


async def create(api: Api, pin: int = 4711) -> int:
    headers = {**KEY, "Content-Type": "application/json"}
    answer = await api.ask("POST", "/schedules", content=BODY.format(pin), headers=headers)
    return answer.status_code


async def test_with_keys_a_short_secret_cannot_be_guessed_from_it(
    database_url: str, connection: psycopg.Connection
):
    async with serving(database_url, encryption_keys=OLD) as api:
        assert await create(api) == 201

    ((digest,),) = connection.execute("select digest from mainspring.replies").fetchall()
    guesses = (f"POST /api/v1/schedules?\n{BODY.format(pin)}".encode() for pin in range(10_000))
    assert bytes(digest) not in {hashlib.sha256(guess).digest() for guess in guesses}


@pytest.mark.parametrize("before", ["", OLD], ids=["no keys", "old key"])
async def test_a_repeat_is_recognised_when_the_keys_have_changed(database_url: str, before: str):
    async with serving(database_url, encryption_keys=before) as api:
        assert await create(api) == 201
        again = [await create(api)]
        api.database.settings = load(database_url=database_url, encryption_keys=f"{NEW},{OLD}")
        again += [await create(api), await create(api, 815)]

    assert again == [201, 201, 409]
