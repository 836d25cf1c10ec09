"""Live answers: what changes is looked for once for everyone who watches, and handed on to all.

    stream ─┐                        ┌─ one statement for all watched jobs, twice a second
    stream ─┼─ topic ── hub, a task ─┤
    stream ─┘                        └─ one look a second for each list and each summary, a few at
                                        a time, of which each tenant has its share

No job waits for a list, and no tenant for the lists of another: whoever watches more lists than can
be looked at in a second gets their changes later. A stream costs memory, not a connection. It tells
whole states, so one that was interrupted has lost nothing: it goes on with the present state,
unless Last-Event-ID says that it is known.

Our own server closes the hub when the last jobs have ended; it looks once more, so that everyone
gets their last state. Another web server that is told to stop waits for its answers to end, and
tells the apps in it only after that. There the hub hears the signal itself, and lets go at once.
"""

import asyncio
import hashlib
import signal
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from types import FrameType

import orjson
import psycopg

from mainspring import telemetry
from mainspring.api.errors import Refused
from mainspring.api.routing import StreamingResponse
from mainspring.db.database import Database
from mainspring.db.outages import OUTAGES, is_outage
from mainspring.db.shares import Shares
from mainspring.domain.errors import MainspringError
from mainspring.domain.errors.access import Unauthenticated
from mainspring.domain.errors.database import ConnectionsBusy
from mainspring.domain.types import JobId
from mainspring.services import streams
from mainspring.services.streams import Watched

Look = Callable[[], Awaitable[bytes]]

MOST_STREAMS = 100

_JOBS_EVERY = 0.5
_LISTS_EVERY = 1.0
_LOOKS_AT_ONCE = 4
_HEARTBEAT = 15.0
_LAST_LOOK_SECONDS = 2.0
# How often the caller's rights are checked while nothing changes, and how old the last check may be
# when something is told.
_CHECK_EVERY = 5.0
_FRESH = 1.0
_TROUBLE = (MainspringError, psycopg.Error, OSError)
_STOPS = (signal.SIGTERM, signal.SIGINT)


@dataclass(eq=False, slots=True)
class Topic:
    """Something that is watched: its newest frame, and who waits for the next."""

    name: str
    tag: str | None = None
    frame: bytes = b""
    is_over: bool = False
    is_shut: bool = False
    watchers: int = 0
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def publish(self, tag: str, data: bytes, *, is_over: bool = False) -> None:
        """Hand a new state to everyone who waits."""
        if tag == self.tag:
            return
        self.tag, self.is_over = tag, is_over
        self.frame = b"id: %s\nevent: %s\ndata: %s\n\n" % (tag.encode(), self.name.encode(), data)
        self._wake()

    def end(self) -> None:
        """There is nothing more to tell."""
        self.is_over = True
        self._wake()

    def shut(self) -> None:
        """Let go of who watches; they may come back, to another server."""
        self.is_shut = True
        self._wake()

    def _wake(self) -> None:
        waited, self.changed = self.changed, asyncio.Event()
        waited.set()


@dataclass(eq=False, slots=True)
class _Listing:
    """A list or a summary that is watched, and in whose share it is looked at."""

    topic: Topic
    look: Look
    tenant: str
    is_looking: bool = False
    looked_at: float = 0.0

    @property
    def is_due(self) -> bool:
        passed = time.monotonic() - self.looked_at
        return not self.is_looking and passed >= _LISTS_EVERY - _JOBS_EVERY / 2


class Hub:
    """All that a server's streams watch."""

    def __init__(self, database: Database, make_frame: Callable[[Watched], bytes]) -> None:
        self._database = database
        self._make_frame = make_frame
        self._jobs: dict[JobId, Topic] = {}
        self._versions: dict[JobId, str | None] = {}
        self._lists: dict[tuple[object, ...], _Listing] = {}
        self._task: asyncio.Task[None] | None = None
        self._looks: set[asyncio.Task[None]] = set()
        self._places = Shares(_LOOKS_AT_ONCE)
        self._streams: Counter[str] = Counter()
        self._troubled: set[object] = set()
        self._woken = asyncio.Event()
        self._is_closed = False
        self.handles_signals = True
        """False where whoever runs the server calls `close`."""

    def stream(self, caller: str, frames: AsyncGenerator[bytes, None]) -> StreamingResponse:
        """The answer with these frames; refused if the caller has too many streams."""
        self._ensure_few(caller)
        return stream(self._counted(caller, frames))

    def _ensure_few(self, caller: str) -> None:
        if self._streams[caller] >= MOST_STREAMS:
            said = f"{MOST_STREAMS} streams of one caller are open; close some and try again"
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, "too_many_streams", said)

    async def _counted(
        self, caller: str, frames: AsyncGenerator[bytes, None]
    ) -> AsyncGenerator[bytes, None]:
        """Counted while they are sent, since an answer may never begin; so of many that are asked
        for at the same moment some are refused only here."""
        try:
            self._ensure_few(caller)
        except Refused as error:
            yield _refusal(error.code, error.detail)
            return
        self._streams[caller] += 1
        try:
            async with aclosing(frames):
                async for frame in frames:
                    yield frame
        finally:
            self._streams[caller] -= 1
            if not self._streams[caller]:
                del self._streams[caller]

    @contextmanager
    def job(self, job_id: JobId) -> Iterator[Topic]:
        topic = self._jobs.setdefault(job_id, Topic("job"))
        self._versions.setdefault(job_id, None)
        with self._watching(topic):
            yield topic
        if not topic.watchers:
            self._jobs.pop(job_id, None)
            self._versions.pop(job_id, None)

    @contextmanager
    def look(
        self, name: str, key: tuple[object, ...], look: Look, *, tenant: str
    ) -> Iterator[Topic]:
        """Whoever watches under the same key shares one look."""
        listing = _Listing(Topic(name), look, tenant)
        topic = self._lists.setdefault((name, *key), listing).topic
        with self._watching(topic):
            yield topic
        if not topic.watchers:
            self._lists.pop((name, *key), None)

    @contextmanager
    def _watching(self, topic: Topic) -> Iterator[None]:
        topic.watchers += 1
        if self._is_closed:
            topic.shut()
        elif self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="mainspring streams")
        try:
            yield
        finally:
            topic.watchers -= 1

    def close(self) -> None:
        """End all streams after a last look, so that the server can stop."""
        self._is_closed = True
        self._woken.set()

    def _shut_all(self) -> None:
        for topic in (*self._jobs.values(), *(each.topic for each in self._lists.values())):
            topic.shut()

    async def _run(self) -> None:
        """As long as anyone watches."""
        # Of this event loop; a test client may have several.
        self._woken, self._places = asyncio.Event(), Shares(_LOOKS_AT_ONCE)
        try:
            with _hearing_stops(self._shut_all) if self.handles_signals else nullcontext():
                while (self._jobs or self._lists) and not self._is_closed:
                    await self._pass()
                    await _changes(self._woken, within=_JOBS_EVERY)
            if self._is_closed:
                await self._last_pass()
        finally:
            for look in self._looks:
                look.cancel()

    async def _last_pass(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_LOOK_SECONDS):
                await self._pass()
                if self._looks:
                    await asyncio.wait(self._looks)
        self._shut_all()

    async def _pass(self) -> None:
        self._start_looks()
        with self._noting(self):
            if self._versions:
                changes = await streams.changes(self._database, self._versions)
                for job_id, watched in changes.items():
                    self._publish(job_id, watched)

    @contextmanager
    def _noting(self, source: object) -> Iterator[None]:
        """Log the first of errors in a row; an outage is logged once for the process."""
        try:
            yield
        except ConnectionsBusy:
            pass  # Those of its own tenant; it looks again later.
        except _TROUBLE as error:
            if is_outage(error):
                OUTAGES.unreachable(self._database.url, "mainspring streams", error)
            elif not self._troubled:
                telemetry.event("streams_paused", error=error)
            self._troubled.add(source)
        else:
            self._troubled.discard(source)

    def _start_looks(self) -> None:
        self._troubled &= {self, *self._lists.values()}
        for listing in self._lists.values():
            if listing.is_due:
                listing.is_looking = True
                look = asyncio.create_task(
                    self._look(listing, self._places), name="mainspring stream of a list"
                )
                self._looks.add(look)
                look.add_done_callback(self._looks.discard)

    async def _look(self, listing: _Listing, places: Shares) -> None:
        await places.take(listing.tenant)
        try:
            with self._noting(listing):
                if listing.topic.watchers:
                    data = await listing.look()
                    listing.topic.publish(hashlib.sha256(data).hexdigest()[:16], data)
        finally:
            places.give_back(listing.tenant)
            listing.looked_at, listing.is_looking = time.monotonic(), False

    def _publish(self, job_id: JobId, watched: Watched) -> None:
        topic = self._jobs.get(job_id)
        if topic is None:
            return
        self._versions[job_id] = watched.version
        if watched.job is None:
            topic.end()
        else:
            tag = f"{job_id}.{watched.version}.{watched.job.state}"
            topic.publish(tag, self._make_frame(watched), is_over=watched.job.is_final)


@contextmanager
def _hearing_stops(stop: Callable[[], None]) -> Iterator[None]:
    """Call it in the event loop on a signal to stop, before whoever else waits for that signal."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    others = {number: signal.getsignal(number) for number in _STOPS}

    def on_signal(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(stop)
        other = others[signal.Signals(number)]
        if callable(other):
            other(number, frame)

    # Where nobody waits for a signal it ends the process, which is as good.
    replaced = [number for number in _STOPS if callable(others[number])]
    for number in replaced:
        signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number in replaced:
            if signal.getsignal(number) is on_signal:
                signal.signal(number, others[number])


def stream(frames: AsyncIterator[bytes]) -> StreamingResponse:
    return StreamingResponse(
        frames,
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


async def follow(
    topic: Topic, *, known: str | None, ensure_allowed: Callable[[float], Awaitable[None]]
) -> AsyncIterator[bytes]:
    """The states of a topic from now on, until it is over or the caller may not watch any more:
    `ensure_allowed` raises Unauthenticated if, as of so many seconds ago, it may not."""
    yield b"retry: 2000\n\n"
    try:
        async for frame in _frames(topic, known, ensure_allowed):
            yield frame
    except Unauthenticated as error:
        yield _refusal(error.code, str(error))


def _refusal(code: str, detail: str) -> bytes:
    said = orjson.dumps({"code": code, "detail": detail})
    return b"event: refused\ndata: %s\n\n" % said


async def _frames(
    topic: Topic, known: str | None, ensure_allowed: Callable[[float], Awaitable[None]]
) -> AsyncIterator[bytes]:
    spoke_at = time.monotonic()
    while True:
        changed = topic.changed
        if topic.tag is not None and topic.tag != known and await _holds(ensure_allowed, _FRESH):
            known = topic.tag
            spoke_at = time.monotonic()
            yield topic.frame
        if topic.is_over and topic.tag in (known, None):
            yield b"event: end\ndata: {}\n\n"
            return
        if topic.is_shut and changed is topic.changed:
            return
        if not await _changes(changed, within=_CHECK_EVERY):
            await _holds(ensure_allowed, _CHECK_EVERY)
            if time.monotonic() - spoke_at >= _HEARTBEAT:
                spoke_at = time.monotonic()
                yield b": still here\n\n"


async def _holds(ensure_allowed: Callable[[float], Awaitable[None]], max_age: float) -> bool:
    """False where it cannot be asked: then nothing is told until it can."""
    try:
        await ensure_allowed(max_age)
    except Unauthenticated:
        raise
    except _TROUBLE:
        return False
    return True


async def _changes(changed: asyncio.Event, *, within: float) -> bool:
    try:
        async with asyncio.timeout(within):
            await changed.wait()
    except TimeoutError:
        return False
    return True
