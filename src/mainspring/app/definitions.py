"""Definitions: create and change those that need no code.

await app.definitions.acreate("daily_cleanup", "sql", function="civic.daily_cleanup")
"""

from typing import Any

from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.definitions import DefinitionState
from mainspring.domain.filters import Several
from mainspring.services import definitions as services

# Inside the class `list` is one of its methods.
States = list[DefinitionState]


class Definitions(Namespace):
    """The definitions of an app: `app.definitions`."""

    async def acreate(self, key: str, kind: str, /, **fields: Any) -> DefinitionState:
        """Create a definition; `kind` is "sql", which needs `function`, "command", which needs
        `argv`, or "remote". Raises DuplicateDefinition if the key is taken."""
        definition = services.make(key, kind, fields)
        definition = services.pinned(definition, self._app.settings.command_paths)
        return await services.create(self._app.database, definition, database=self._app.database)

    async def aupdate(self, key: str, /, **changes: Any) -> DefinitionState:
        """Update some fields. Jobs already enqueued run with the old values."""
        database, directories = self._app.database, self._app.settings.command_paths
        return await services.update(
            database, key, changes, directories=directories, database=database
        )

    async def aactivate(self, key: str) -> DefinitionState:
        """Allow jobs to be enqueued again."""
        return await services.set_active(self._app.database, key, is_active=True)

    async def adeactivate(self, key: str) -> DefinitionState:
        """Refuse new jobs; those already enqueued still run."""
        return await services.set_active(self._app.database, key, is_active=False)

    async def aget(self, key: str) -> DefinitionState:
        """One definition, active or not; raises UnknownDefinition."""
        return await services.get(self._app.database, key)

    async def alist(
        self,
        *,
        kind: Several[str] = None,
        active: bool | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> States:
        """Definitions by key; pass the last key as `after` for the next page."""
        return await services.list_definitions(
            self._app.database, after=after, kind=kind, active=active, limit=limit
        )

    create = blocking(acreate)
    update = blocking(aupdate)
    activate = blocking(aactivate)
    deactivate = blocking(adeactivate)
    get = blocking(aget)
    list = blocking(alist)
