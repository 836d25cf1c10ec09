"""LISTEN on a connection of its own, for ever: it comes back after every loss."""

import asyncio
from collections.abc import Callable

import psycopg

from mainspring import telemetry
from mainspring.db import connect
from mainspring.db.outages import OUTAGES
from mainspring.domain.errors.database import DatabaseError

CHANNEL = "mainspring"
_LISTEN = "listen mainspring"
_LONGEST_PAUSE = 10.0
_LONGEST_SHOWN = 200


async def listen(
    url: str, *, on_message: Callable[[str], None], on_connect: Callable[[], None]
) -> None:
    """Hand over each message; `on_connect` is called when messages may have been missed. A message
    that `on_message` raises an error for is ignored, since everyone may send any."""
    on_any = _tolerant(on_message)
    pause = 0.1
    while True:
        try:
            connection = await connect.connect(url, name="mainspring listen")
            OUTAGES.answers(url, "mainspring listen")
            async with connection:
                await connection.execute(_LISTEN)
                pause = 0.1
                on_connect()
                async for notify in connection.notifies():
                    on_any(notify.payload)
        except (psycopg.Error, DatabaseError, UnicodeDecodeError):
            # Polling goes on meanwhile, so a lost connection costs latency only.
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)


def _tolerant(on_message: Callable[[str], None]) -> Callable[[str], None]:
    """The same, but an error is logged, once, and ends nothing."""
    has_logged = False

    def deliver(payload: str) -> None:
        nonlocal has_logged
        try:
            on_message(payload)
        except Exception as error:  # noqa: BLE001 - whatever someone sent must not end the duty
            if not has_logged:
                has_logged = True
                shown = payload[:_LONGEST_SHOWN]
                telemetry.event("notification_ignored", payload=shown, error=repr(error)[:500])

    return deliver
