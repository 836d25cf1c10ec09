"""People: who may log in, and as what."""

import asyncio

from mainspring.db.database import Database
from mainspring.services import people
from mainspring.settings import load


async def test_servers_that_start_together_make_one_operator(database_url):
    servers = [Database(load(database_url=database_url)) for _ in range(8)]

    made = await asyncio.gather(*(people.ensure_operator(server) for server in servers))

    assert [person.name for person in made if person is not None] == ["operator"]
    for server in servers:
        await server.aclose()
