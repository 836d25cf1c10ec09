"""Public methods: async ones start with a, and have a blocking twin that takes the same."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import mainspring
from mainspring import Mainspring, testing
from mainspring.app.nouns import Namespaces

# Each runs beside the caller's own event loop, so there is nothing to block on.
BESIDE_AN_EVENT_LOOP = {"Mainspring.lifespan", "Schedules.running"}
# All of its methods are async; it is made from Client, its blocking twin. See test_async_client.
ASYNC_CLASSES = {mainspring.AsyncClient}


def namespaces() -> set[type]:
    app = Mainspring("postgresql://nobody@localhost/nowhere")
    return {type(getattr(app, noun)) for noun in Namespaces.__annotations__}


def public_classes() -> list[type]:
    named = (getattr(mainspring, name) for name in mainspring.__all__)
    found = {each for each in named if inspect.isclass(each)} | namespaces()
    return sorted(found - ASYNC_CLASSES, key=lambda each: each.__name__)


def is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(
        inspect.unwrap(function)
    )


def async_names(owner: Any) -> Iterator[str]:
    for name, member in inspect.getmembers(owner, callable):
        if not name.startswith("_") and is_async(member):
            yield name


def parameters(function: Callable[..., Any]) -> list[tuple[str, Any, Any]]:
    """Names, kinds and defaults; a connection is of another type in the blocking twin."""
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in found]


def problems(owner: Any, exempt: set[str]) -> Iterator[str]:
    for name in async_names(owner):
        full = f"{owner.__name__}.{name}"
        twin = getattr(owner, name[1:], None) if name[1:] else None
        if full in exempt:
            continue
        if not name.startswith("a") or twin is None:
            yield f"{full}: has no blocking twin without an a"
        elif is_async(twin):
            yield f"{full}: its twin is async"
        elif parameters(twin) != parameters(getattr(owner, name)):
            yield f"{full}: its twin takes other parameters"


def test_every_noun_of_an_app_is_looked_at():
    names = {each.__name__ for each in public_classes()}

    assert {"Context", "Flow", "JobFunction", "JobHandle", "Jobs", "Mainspring"} <= names
    assert {"Approvals", "Definitions", "Events", "Flows", "Schedules", "Triggers"} <= names


@pytest.mark.parametrize("owner", [*public_classes(), testing], ids=lambda each: each.__name__)
def test_every_async_method_has_a_blocking_twin(owner: Any):
    assert list(problems(owner, BESIDE_AN_EVENT_LOOP)) == []


def test_what_is_exempt_is_there():
    found = {f"{each.__name__}.{name}" for each in public_classes() for name in async_names(each)}

    assert found >= BESIDE_AN_EVENT_LOOP


class Wrong:
    async def find(self) -> None: ...

    async def arun(self) -> None: ...

    async def aget(self, key: str) -> None: ...

    def get(self, key: str = "") -> None: ...

    async def aopen(self) -> None: ...

    async def open(self) -> None: ...

    @asynccontextmanager
    async def held(self) -> Any:
        yield


def test_what_is_wrong_is_noticed():
    assert list(problems(Wrong, set())) == [
        "Wrong.aget: its twin takes other parameters",
        "Wrong.aopen: its twin is async",
        "Wrong.arun: has no blocking twin without an a",
        "Wrong.find: has no blocking twin without an a",
        "Wrong.held: has no blocking twin without an a",
        "Wrong.open: has no blocking twin without an a",
    ]
