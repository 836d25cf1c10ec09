"""`client.doctor`."""

from collections.abc import Sequence

from mainspring.api.models.doctor import ReportModel
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request


class Doctor(Resource):
    """What is wrong with the database, for operators: `client.doctor`."""

    async def examine(self, *, only: Sequence[str] = ()) -> ReportModel:
        """Examine the database; `only` names checks, such as D13."""
        return await self._client.call(Request("GET", "/doctor", {"only": [*only]}), ReportModel)

    async def fix(self, *, only: Sequence[str] = ()) -> ReportModel:
        """Fix what needs no judgement, and examine the database afterwards."""
        request = Request("POST", "/doctor/fix", {"only": [*only]})
        return await self._client.call(request, ReportModel)
