"""Definitions at the Python door: those that need no code, made and steered by key.

await app.definitions.acreate("daily_cleanup", "sql", function="civic.daily_cleanup")
"""

from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from mainspring.db.access import Database
from mainspring.domain.definitions import DefinitionState
from mainspring.services import definitions as services
from mainspring.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")

# Inside the class `list` is one of its methods.
States = list[DefinitionState]


class Door(Protocol):
    """The `Mainspring` as its definitions need it."""

    database: Database
    settings: Settings

    def blocking(self, coroutine: Coroutine[Any, Any, T]) -> T: ...


def _blocking(
    method: Callable[Concatenate["Definitions", P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate["Definitions", P], T]:
    """The same method for plain code."""

    @wraps(method)
    def run(self: "Definitions", /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._app.blocking(method(self, *args, **kwargs))

    run.__name__ = method.__name__.removeprefix("a")
    run.__qualname__ = f"Definitions.{run.__name__}"
    return run


class Definitions:
    """The definitions of an app: `app.definitions`. Each method has a blocking twin without its
    a."""

    def __init__(self, app: Door) -> None:
        self._app = app

    async def acreate(self, key: str, kind: str, /, **fields: Any) -> DefinitionState:
        """Add a definition; `kind` is "sql", which needs `function`, or "command", which needs
        `argv`."""
        definition = services.make(key, kind, fields)
        definition = services.pinned(definition, self._app.settings.command_paths)
        return await services.create(self._app.database, definition)

    async def aupdate(self, key: str, /, **changes: Any) -> DefinitionState:
        """Change some fields. Jobs that are enqueued already run as they were meant to."""
        directories = self._app.settings.command_paths
        return await services.update(self._app.database, key, changes, directories=directories)

    async def aactivate(self, key: str) -> DefinitionState:
        """Let jobs be enqueued again."""
        return await services.set_active(self._app.database, key, is_active=True)

    async def adeactivate(self, key: str) -> DefinitionState:
        """Refuse new jobs; those that are enqueued already still run."""
        return await services.set_active(self._app.database, key, is_active=False)

    async def aget(self, key: str) -> DefinitionState:
        return await services.get(self._app.database, key)

    async def alist(
        self,
        *,
        kind: str | None = None,
        active: bool | None = None,
        after: str | None = None,
        limit: int = 100,
    ) -> States:
        """By key; page on with the last key as `after`."""
        return await services.list_definitions(
            self._app.database, after=after, kind=kind, active=active, limit=limit
        )

    create = _blocking(acreate)
    update = _blocking(aupdate)
    activate = _blocking(aactivate)
    deactivate = _blocking(adeactivate)
    get = _blocking(aget)
    list = _blocking(alist)
