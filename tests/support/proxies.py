"""Ways to the database that lose an answer: what was asked is done, and nobody hears of it; or that
go silent without a word, as a network does."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

from psycopg.conninfo import conninfo_to_dict

# https://www.postgresql.org/docs/current/protocol-message-formats.html: Execute of the unnamed
# portal without a row limit, the start of Query, and ReadyForQuery outside and in a transaction.
_EXECUTE = b"E\x00\x00\x00\x09\x00\x00\x00\x00\x00"
_QUERY = b"Q"
_NAME = b"application_name\0"
_READY = b"Z\x00\x00\x00\x05I"
_READY_INSIDE = b"Z\x00\x00\x00\x05T"


class LossyProxy:
    """Forwards connections to a server."""

    def __init__(self, target_url: str) -> None:
        self.lost = 0
        self._target = conninfo_to_dict(target_url)
        self._statement: bytes | None = None
        self._server: asyncio.Server | None = None
        self._port = 0
        self._links: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        user, database = self._target["user"], self._target["dbname"]
        password = quote(str(self._target.get("password", "")), safe="")
        return (
            f"postgresql://{user}:{password}@127.0.0.1:{self._port}/{database}"
            "?sslmode=disable&gssencmode=disable"
        )

    def lose_answer_to(self, statement: str) -> None:
        """Cut the next connection on which the statement is executed, once it is committed."""
        self._statement = statement.encode()

    async def start(self) -> None:
        """On the same port as before, if it was stopped."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        assert self._server is not None
        self._server.close()
        for link in self._links:
            link.cancel()
        await asyncio.gather(*self._links, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.current_task()
        assert link is not None
        self._links.add(link)
        link.add_done_callback(self._links.discard)
        theirs, to_server = await self._connect()
        is_doomed = asyncio.Event()
        directions = (
            asyncio.create_task(self._ask(reader, to_server, is_doomed)),
            asyncio.create_task(self._answer(theirs, writer, is_doomed)),
        )
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            return  # The server of asyncio would complain about a connection that was canceled.
        finally:
            for direction in directions:
                direction.cancel()
            writer.close()
            to_server.close()

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        host, port = str(self._target.get("host", "localhost")), self._target.get("port", 5432)
        if host.startswith("/"):
            return await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        return await asyncio.open_connection(host, port)

    async def _ask(
        self, client: asyncio.StreamReader, server: asyncio.StreamWriter, is_doomed: asyncio.Event
    ) -> None:
        is_marked = False
        while asked := await client.read(1 << 16):
            if self._statement is not None and self._statement in asked:
                is_marked, self._statement = True, None
            # A statement that is prepared comes first and is executed by a later message.
            if is_marked and (_EXECUTE in asked or asked.startswith(_QUERY)):
                is_doomed.set()
            server.write(asked)
            await server.drain()

    async def _answer(
        self, server: asyncio.StreamReader, client: asyncio.StreamWriter, is_doomed: asyncio.Event
    ) -> None:
        answer = b""
        while part := await server.read(1 << 16):
            answer += part
            if is_doomed.is_set() and answer.endswith(_READY):
                self.lost += 1
                return
            # In a transaction it is not committed yet, so the answer to its commit is lost.
            if not is_doomed.is_set() or answer.endswith(_READY_INSIDE):
                client.write(answer)
                await client.drain()
                answer = b""


class SilentProxy(LossyProxy):
    """Forwards connections until it is told to forward nothing more, and does not close them."""

    def __init__(self, target_url: str) -> None:
        super().__init__(target_url)
        self._gates: dict[str, list[asyncio.Event]] = {}
        self._silent: set[str] = set()

    def silence(self, name: str, *, new_ones: bool = False) -> None:
        """Forward nothing more of the connections of that application name, "" for none."""
        if new_ones:
            self._silent.add(name)
        for gate in self._gates.get(name, []):
            gate.clear()

    def heal(self) -> None:
        """Let new connections through; those that are silent stay so."""
        self._silent.clear()

    async def _ask(
        self, client: asyncio.StreamReader, server: asyncio.StreamWriter, is_doomed: asyncio.Event
    ) -> None:
        gate = asyncio.Event()
        name = ""
        while asked := await client.read(1 << 16):
            if _NAME in asked and not name:
                name = asked.partition(_NAME)[2].partition(b"\0")[0].decode()
            if gate not in self._gates.setdefault(name, []):
                self._gates[name].append(gate)
                if name not in self._silent:
                    gate.set()
            await gate.wait()
            server.write(asked)
            await server.drain()


@asynccontextmanager
async def silent_proxy(target_url: str) -> AsyncIterator[SilentProxy]:
    proxy = SilentProxy(target_url)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()


@asynccontextmanager
async def lossy_proxy(target_url: str) -> AsyncIterator[LossyProxy]:
    proxy = LossyProxy(target_url)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.stop()
