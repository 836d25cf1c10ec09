"""The rules of definitions, for payloads that are about to be enqueued.

During a deployment there are two versions of a handler, and jobs for both. So a payload is right if
it fits the schema of the definition, which is that of whoever declared it last, or the schema of
any live worker. A worker that gets one which only others take leaves it to them; see
`runtime/worker/payload_checks.py`.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from mainspring.db.plans import Plan, Statement
from mainspring.db.sessions import Session
from mainspring.domain.definitions import Handler
from mainspring.domain.schemas import Schema
from mainspring.domain.secrets.paths import secret_paths
from mainspring.services.payloads import PayloadRules
from mainspring.store import definitions as store
from mainspring.store.rows.definitions import Schemas, read_schemas

_FRESH_SECONDS = 5.0


class SchemaCache:
    """The rules of an app's handlers, and those of other definitions as they were a few seconds
    ago; a worker checks once more, by the version that the job got."""

    def __init__(self, handlers: Mapping[str, Handler]) -> None:
        self._handlers = handlers
        self._read: dict[str, tuple[float, PayloadRules]] = {}

    def known(self, key: str) -> PayloadRules | None:
        """None if the database has to be asked."""
        handler = self._handlers.get(key)
        if handler is not None:
            return PayloadRules(handler.schema, handler.secret_paths)
        read_at, rules = self._read.get(key, (float("-inf"), None))
        return rules if time.monotonic() - read_at < _FRESH_SECONDS else None

    def find(self, key: str) -> Plan[PayloadRules]:
        """The rules of a definition; there are none for a key that no definition has."""
        rules = self.known(key)
        if rules is None:
            rules = yield from read_rules(key)
            self._read[key] = (time.monotonic(), rules)
        return rules

    def find_wider(self, key: str) -> Plan[PayloadRules]:
        """The rules of a definition as the database has them now, besides those of the app's own
        handler, for a payload that does not fit what is known."""
        own, read = self.known(key), (yield from read_rules(key))
        if key not in self._handlers or own is None:
            self._read[key] = (time.monotonic(), read)
            return read
        if own.schema == read.schema and not read.others:
            return own
        if read.schema is None:
            return PayloadRules(secret_paths=own.secret_paths)
        paths = {*own.secret_paths, *read.secret_paths}
        return PayloadRules(own.schema, tuple(sorted(paths)), (read.schema, *read.others))


def read_rules(key: str) -> Plan[PayloadRules]:
    """The rules that the database has now; none for a key that no definition has."""
    rows = yield Statement(store.schemas_of(key))
    return _rules(key, read_schemas(rows[0]) if rows else None)


async def stored_rules(session: Session, key: str) -> PayloadRules:
    """The same, on a session that may be of the caller's own transaction."""
    return _rules(key, await store.find_schemas(session, key))


def _rules(key: str, found: Schemas | None) -> PayloadRules:
    if found is None:
        return PayloadRules()
    return rules_of(key, found.arg_schema, found.others)


def rules_of(
    key: str, document: Mapping[str, Any] | None, others: Sequence[Mapping[str, Any]] = ()
) -> PayloadRules:
    """Those that JSON Schemas say; none if the first is None."""
    if not isinstance(document, dict):
        return PayloadRules()
    paths = {path for each in (document, *others) for path in secret_paths(each)}
    return PayloadRules(
        Schema(key, document), tuple(sorted(paths)), tuple(Schema(key, each) for each in others)
    )
