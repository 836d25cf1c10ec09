"""The schemas of definitions, for payloads that are about to be enqueued."""

import time
from collections.abc import Iterable, Mapping

from mainspring.db.database import Database
from mainspring.domain.definitions import Handler
from mainspring.domain.schemas import Schema
from mainspring.domain.secrets.paths import Path, secret_paths
from mainspring.store import definitions as store

_FRESH_SECONDS = 5.0


class SchemaBook:
    """Those of an app's handlers, and those of definitions without code as they were a few seconds
    ago; a worker checks once more, by the version that the job got."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._known: dict[str, tuple[float, Schema | None, tuple[Path, ...]]] = {}

    def ensure(self, database: Database, key: str, payloads: Iterable[object]) -> None:
        """Raise InvalidPayload for the first that does not fit."""
        if not self._is_known(key):
            self._learn(key, database.run(store.schema_of(key)))
        self._check(key, payloads)

    async def aensure(self, database: Database, key: str, payloads: Iterable[object]) -> None:
        """The same from async code."""
        if not self._is_known(key):
            self._learn(key, await database.arun(store.schema_of(key)))
        self._check(key, payloads)

    def secret_paths(self, key: str) -> tuple[Path, ...]:
        """Where payloads of a definition hold secrets, once one was checked."""
        handler = self._handlers.get(key)
        return handler.secret_paths if handler is not None else self._known[key][2]

    def _is_known(self, key: str) -> bool:
        if key in self._handlers:
            return True
        learned_at = self._known[key][0] if key in self._known else float("-inf")
        return time.monotonic() - learned_at < _FRESH_SECONDS

    def _learn(self, key: str, rows: list[tuple[object, ...]]) -> None:
        document = rows[0][0] if rows else None
        document = document if isinstance(document, dict) else None
        schema = None if document is None else Schema(key, document)
        self._known[key] = (time.monotonic(), schema, secret_paths(document))

    def _check(self, key: str, payloads: Iterable[object]) -> None:
        handler = self._handlers.get(key)
        schema = handler.schema if handler is not None else self._known[key][1]
        if schema is not None:
            for payload in payloads:
                schema.ensure(payload)
