"""The endpoints by resource: a module is named for the first part of its paths, so a new resource
needs its module and nothing else. It is imported when one of its paths is requested."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from types import MappingProxyType, ModuleType

from mainspring.api.routing import Router

# Modules whose paths begin with the name of another.
_BELOW = MappingProxyType({"jobs": ("operations", "streams", "why")})


def routers_of(segment: str) -> Iterator[Router]:
    """The routers that may have a path that begins with the segment."""
    known = set(_names())
    for name in (segment, *_BELOW.get(segment, ())):
        if name in known:
            yield from _routers(_module(name))


def all_routers() -> Iterator[Router]:
    for name in _names():
        yield from _routers(_module(name))


def modules() -> Iterator[ModuleType]:
    return (_module(name) for name in _names())


def _names() -> list[str]:
    return sorted(each.name for each in pkgutil.iter_modules(__path__))


def _module(name: str) -> ModuleType:
    return import_module(f"{__name__}.{name}")


def _routers(module: ModuleType) -> Iterator[Router]:
    return (each for each in vars(module).values() if isinstance(each, Router))
