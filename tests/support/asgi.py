"""What scheduler processes run in tests: launchers of every kind, and an ASGI app for gunicorn."""

import asyncio
import logging
import sys
import threading
import time
from datetime import UTC, datetime
from typing import Any

from fastapi import FastAPI

from mainspring import Launcher, Mainspring

FOR_EVER = 60.0

# Gunicorn shows its own lines only.
logging.basicConfig(level=logging.INFO)

app = Mainspring()
site = FastAPI(lifespan=app.lifespan)


def register(kind: type[Launcher]) -> type[Launcher]:
    """Under its own name."""
    app.schedules.register_launcher(kind.__name__, kind)
    return kind


@register
class Plain(Launcher):
    """Runs with a payload that says what it was told."""

    def prepare_job_data(self) -> dict[str, Any]:
        return {
            "schedule": self.schedule.name,
            "trigger": self.slot.trigger,
            "slot_at": self.slot.at.isoformat(),
            "missed": self.slot.missed,
            "max_retries": self.max_retries,
            "has_queue": self.job_queue.database is app.database,
        }


@register
class Asynchronous(Launcher):
    async def check_conditions(self) -> bool:
        await asyncio.sleep(0)
        return True

    async def prepare_job_data(self) -> dict[str, Any]:
        await asyncio.sleep(0)
        return {"from": "a coroutine"}


@register
class HalfAsynchronous(Launcher):
    """Plain methods that answer with a coroutine."""

    def check_conditions(self) -> Any:
        return Asynchronous.check_conditions(self)  # type: ignore[arg-type]

    def prepare_job_data(self) -> Any:
        return Asynchronous.prepare_job_data(self)  # type: ignore[arg-type]


@register
class SameThread(Launcher):
    """Asks its methods to share a thread, as a database connection may."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.thread = threading.get_ident()

    def check_conditions(self) -> bool:
        return self.thread == threading.get_ident()

    def prepare_job_data(self) -> dict[str, Any]:
        return {"is_same": self.thread == threading.get_ident()}


@register
class Other(Launcher):
    """Starts another definition than the schedule's."""

    job_type = "other"


@register
class Missing(Launcher):
    job_type = "nowhere"


@register
class Numbered(Launcher):
    def get_job_type(self) -> Any:
        return 7


@register
class No(Launcher):
    def check_conditions(self) -> bool:
        return False


@register
class NoBecause(Launcher):
    def check_conditions(self) -> bool:
        self.reason = "nothing new"
        return False


@register
class Slow(Launcher):
    def check_conditions(self) -> bool:
        time.sleep(1.5)
        return True


@register
class Hang(Launcher):
    def check_conditions(self) -> bool:
        return threading.Event().wait(FOR_EVER)


@register
class HangAsynchronously(Launcher):
    async def check_conditions(self) -> bool:
        await asyncio.sleep(FOR_EVER)
        return True


@register
class HangAtOnce(Launcher):
    def __init__(self, *_: Any) -> None:
        threading.Event().wait(FOR_EVER)


@register
class Raise(Launcher):
    def check_conditions(self) -> bool:
        raise ValueError("the feed is down")


@register
class RaiseAsynchronously(Launcher):
    async def check_conditions(self) -> bool:
        raise ValueError("the feed is down")


@register
class RaiseAtOnce(Launcher):
    def __init__(self, *_: Any) -> None:
        raise ValueError("no such feed")


@register
class RaiseInPayload(Launcher):
    def prepare_job_data(self) -> dict[str, Any]:
        raise KeyError("feed")


@register
class RaiseTimeout(Launcher):
    """A timeout of its own, long before the schedule's."""

    async def check_conditions(self) -> bool:
        raise TimeoutError("the feed is slow")


@register
class StopIterating(Launcher):
    def check_conditions(self) -> bool:
        return bool(next(iter([])))


@register
class Exit(Launcher):
    def check_conditions(self) -> bool:
        sys.exit("bye")


@register
class ExitAsynchronously(Launcher):
    async def check_conditions(self) -> bool:
        sys.exit("bye")


@register
class CancelItself(Launcher):
    async def check_conditions(self) -> bool:
        raise asyncio.CancelledError


@register
class SayNul(Launcher):
    def check_conditions(self) -> bool:
        raise ValueError("a \x00 and a \udcff")


@register
class NulPayload(Launcher):
    def prepare_job_data(self) -> dict[str, Any]:
        return {"text": "a \x00"}


@register
class NoPayload(Launcher):
    def prepare_job_data(self) -> Any:
        return None


@register
class ListPayload(Launcher):
    def prepare_job_data(self) -> Any:
        return [1, 2]


@register
class DatePayload(Launcher):
    def prepare_job_data(self) -> dict[str, Any]:
        return {"at": datetime.now(UTC)}


@register
class LargePayload(Launcher):
    def prepare_job_data(self) -> dict[str, Any]:
        return {"text": "x" * 2_000_000}
