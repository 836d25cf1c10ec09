"""Limits that several definitions share.

await app.limits.aset("openai", rate="60/minute")

@app.job(limit="openai")
async def embed(text: str) -> None: ...
"""

from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.limits import Limit, LimitState, Rate
from mainspring.services import limits as services

# Inside the class `list` is one of its methods.
States = list[LimitState]


class Limits(Namespace):
    """The shared limits of an app: `app.limits`."""

    async def aset(
        self,
        name: str,
        /,
        *,
        concurrency: int | None = None,
        key_concurrency: int | None = None,
        rate: str | None = None,
        burst: int = 1,
        by: str | None = None,
    ) -> LimitState:
        """Set what a limit allows; omitted arguments are unlimited. A `rate` is written like
        "60/minute"; `by` is who the audit log names."""
        parsed = None if rate is None else Rate.parse(rate)
        limit = Limit(
            name,
            concurrency=concurrency,
            key_concurrency=key_concurrency,
            rate=parsed,
            burst=burst,
        )
        return await services.set_limit(self._app.database, limit, actor=by)

    async def aremove(self, name: str, /, *, by: str | None = None) -> None:
        """Remove a limit; jobs that wait for it become ready."""
        await services.remove(self._app.database, name, actor=by)

    async def aget(self, name: str, /) -> LimitState:
        """One limit with the number of its running and waiting jobs; raises LimitNotFound."""
        return await services.get(self._app.database, name)

    async def alist(self) -> States:
        """All limits by name, including those of single definitions."""
        return await services.list_limits(self._app.database)

    set = blocking(aset)
    remove = blocking(aremove)
    get = blocking(aget)
    list = blocking(alist)
