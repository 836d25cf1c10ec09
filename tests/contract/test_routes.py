"""Routes are found by their modules, so no path of one module may match a path of another."""

import re
from collections.abc import Iterator

from fastapi.routing import APIRoute

from mainspring.api import app

NUMBER = re.compile(r"\{\w+:int\}")
NAME = re.compile(r"\{\w+\}")


def routes() -> Iterator[APIRoute]:
    return (route for route in app._routes() if isinstance(route, APIRoute))


def sample(route: APIRoute) -> str:
    """A path that the route is for."""
    return NAME.sub("name", NUMBER.sub("7", route.path))


def rivals(route: APIRoute) -> list[str]:
    """The routes of other modules that would also answer the sample."""
    return [
        f"{other.path} of {other.endpoint.__module__}"
        for other in routes()
        if other.methods & route.methods
        and other.endpoint.__module__ != route.endpoint.__module__
        and other.path_regex.match(sample(route))
    ]


def test_every_module_of_routes_is_served():
    served = {route.endpoint.__module__ for route in routes()}

    assert {f"mainspring.api.routes.{name}" for name in ("jobs", "me", "login", "work")} <= served


def test_no_path_is_answered_by_two_modules():
    found = {route.path: rivals(route) for route in routes()}

    assert {path: others for path, others in found.items() if others} == {}
