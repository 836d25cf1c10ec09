"""`client.figures`."""

from typing import Any

from mainspring.api.models.figures import FigureReportModel
from mainspring.client._async.resource import Resource
from mainspring.client.requests import Request


class Figures(Resource):
    """Figures: `client.figures`."""

    async def read(self, **filters: Any) -> FigureReportModel:
        """Figures of a time, by default of the last day; `start` and `end` say which."""
        named = {"start": "from", "end": "to"}
        asked = {named.get(name, name): value for name, value in filters.items()}
        return await self._client.call(Request("GET", "/figures", asked), FigureReportModel)
