"""An app of someone else's with the API in it; its answers say which process they are from."""

import os
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from fastapi import FastAPI

from mainspring import Mainspring

Message = MutableMapping[str, Any]

jobs = Mainspring()
app = FastAPI(lifespan=jobs.lifespan)
app.mount("/mainspring", jobs.api())


async def site(
    scope: Message,
    receive: Callable[[], Awaitable[Message]],
    send: Callable[[Message], Awaitable[None]],
) -> None:
    async def signed(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message["headers"], (b"x-process", b"%d" % os.getpid())]
        await send(message)

    await app(scope, receive, signed)
