"""The rules of definitions, for payloads that are about to be enqueued."""

import time
from collections.abc import Mapping

from mainspring.db.plans import Plan, Statement
from mainspring.domain.definitions import Handler
from mainspring.domain.schemas import Schema
from mainspring.domain.secrets.paths import secret_paths
from mainspring.services.payloads import PayloadRules
from mainspring.store import definitions as store

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


def read_rules(key: str) -> Plan[PayloadRules]:
    """The rules that the database has now; none for a key that no definition has."""
    rows = yield Statement(store.schema_of(key))
    return rules_of(key, rows[0][0] if rows else None)


def rules_of(key: str, document: object) -> PayloadRules:
    """Those that a JSON Schema says; none if it is None."""
    if not isinstance(document, dict):
        return PayloadRules()
    return PayloadRules(Schema(key, document), secret_paths(document))
