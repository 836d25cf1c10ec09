"""`client.figures`."""

from typing import Any

from mainspring.api.models.figures import FigureReportModel
from mainspring.client._sync.resource import Resource
from mainspring.client.requests import Request


class Figures(Resource):
    """Figures: `client.figures`."""

    def read(self, **filters: Any) -> FigureReportModel:
        """Figures of a time, by default of the last day; `start` and `end` say which."""
        named = {"start": "from", "end": "to"}
        asked = {named.get(name, name): value for name, value in filters.items()}
        return self._client.call(Request("GET", "/figures", asked), FigureReportModel)
