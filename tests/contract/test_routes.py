"""Routes are found by their modules, so no path of one module may match a path of another."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from mainspring.api import routes
from mainspring.api.direct import _pattern
from mainspring.api.routing import Route, Router

NUMBER = re.compile(r"\{\w+:int\}")
NAME = re.compile(r"\{\w+\}")


class Served(NamedTuple):
    module: str
    route: Route

    @property
    def sample(self) -> str:
        """A path that the route is for."""
        return NAME.sub("name", NUMBER.sub("7", self.route.path))

    def answers_too(self, other: "Served") -> bool:
        """Whether it would answer the sample of a route of another module."""
        matches = re.fullmatch(_pattern(self.route.path), other.sample) is not None
        return self.module != other.module and self.route.method == other.route.method and matches


def served() -> Iterator[Served]:
    for module in routes.modules():
        for router in vars(module).values():
            if isinstance(router, Router):
                yield from (Served(module.__name__, route) for route in router.routes)


def test_every_module_of_routes_is_served():
    modules = {each.module.rpartition(".")[2] for each in served()}

    assert {"jobs", "streams", "me", "work"} <= modules


def test_no_path_is_answered_by_two_modules():
    everything = list(served())

    found = [
        (each.route.path, each.module, other.module)
        for each in everything
        for other in everything
        if other.answers_too(each)
    ]
    assert found == []
