"""Routes are found by their modules, so no path of one module may match a path of another."""

import re
from typing import NamedTuple

from fastapi.routing import APIRoute

from mainspring.api import app

NUMBER = re.compile(r"\{\w+:int\}")
NAME = re.compile(r"\{\w+\}")


class Served(NamedTuple):
    module: str
    route: APIRoute

    @property
    def sample(self) -> str:
        """A path that the route is for."""
        return NAME.sub("name", NUMBER.sub("7", self.route.path))

    def answers_too(self, other: "Served") -> bool:
        """Whether it would answer the sample of a route of another module."""
        shared = set(self.route.methods or ()) & set(other.route.methods or ())
        matches = self.route.path_regex.match(other.sample) is not None
        return self.module != other.module and bool(shared) and matches


def served() -> list[Served]:
    routers = {
        module.__name__: getattr(module, name)
        for module in app._route_modules()
        for name in ("router", "page_router")
        if hasattr(module, name)
    }
    return [
        Served(module, route)
        for module, router in routers.items()
        for route in router.routes
        if isinstance(route, APIRoute)
    ]


def test_every_module_of_routes_is_served():
    modules = {each.module.rpartition(".")[2] for each in served()}

    assert {"jobs", "streams", "me", "login", "work"} <= modules


def test_no_path_is_answered_by_two_modules():
    everything = served()

    found = [
        (each.route.path, each.module, other.module)
        for each in everything
        for other in everything
        if other.answers_too(each)
    ]
    assert found == []
