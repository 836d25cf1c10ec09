"""The doctor: what is wrong with the database, and what to do about it.

report = await app.doctor.aexamine()
"""

from collections.abc import Sequence

from mainspring.app.namespaces import Namespace, blocking
from mainspring.domain.checks.model import Report
from mainspring.services import doctor as services


class Doctor(Namespace):
    """Checks of the database: `app.doctor`."""

    async def aexamine(self, *, only: Sequence[str] = ()) -> Report:
        """Examine the database; `only` names checks, such as D13. Raises InvalidOption for one that
        does not exist."""
        return await services.examine(self._app.database, self._app.settings, only=only)

    async def afix(self, *, only: Sequence[str] = ()) -> Report:
        """Fix what needs no judgement, and examine the database afterwards."""
        return await services.fix(self._app.database, self._app.settings, only=only)

    examine = blocking(aexamine)
    fix = blocking(afix)
