"""Jobs of commands, for tests that write the programs themselves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from mainspring import Job, Mainspring
from tests.support.workers import ended, working

Program = Callable[[str, str], Path]


async def run(app: Mainspring, argv: list[Any], payload: Any = None, **fields: Any) -> Job:
    """A job of a definition of the command, once it is over."""
    fields = {"max_attempts": 1, **fields}
    await app.definitions.acreate("work", "command", argv=argv, **fields)
    async with working(app, command_directories=app.settings.command_directories):
        return await ended(await app.aenqueue("work", payload or {}))


async def attempt(app: Mainspring, job: Job) -> Any:
    (only,) = await app.jobs.aattempts(job.id)
    return only
