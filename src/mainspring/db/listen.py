"""LISTEN on a connection of its own, for ever: it comes back after every loss."""

import asyncio
from collections.abc import Callable

import psycopg

from mainspring.db import connect
from mainspring.domain.errors.database import DatabaseError

CHANNEL = "mainspring"
_LISTEN = "listen mainspring"
_LONGEST_PAUSE = 10.0


async def listen(
    url: str, *, on_message: Callable[[str], None], on_connect: Callable[[], None]
) -> None:
    """Hand over each message; `on_connect` is called when messages may have been missed."""
    pause = 0.1
    while True:
        try:
            connection = await connect.connect(url, name="mainspring listen")
            async with connection:
                await connection.execute(_LISTEN)
                pause = 0.1
                on_connect()
                async for notify in connection.notifies():
                    on_message(notify.payload)
        except (psycopg.Error, DatabaseError):
            # Polling goes on meanwhile, so a lost connection costs latency only.
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
