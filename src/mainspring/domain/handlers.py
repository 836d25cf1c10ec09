"""Python functions as handlers: what their signature says, checked when they are registered."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_origin

from mainspring.domain.errors import InvalidDefinition, InvalidPayload
from mainspring.domain.types import ExecutionMode

CONTEXT_NAME = "ctx"
_SAMPLES: Mapping[str, object] = {"int": 1, "float": 1.5, "bool": True, "list": [], "dict": {}}


@dataclass(frozen=True, slots=True)
class HandlerSignature:
    """The arguments of a handler, without its context."""

    signature: inspect.Signature
    positions: tuple[str, ...]
    names: frozenset[str]
    required: frozenset[str]
    takes_any: bool
    wants_context: bool

    def fits(self, payload: dict[str, Any]) -> bool:
        """Whether the handler can be called with the payload."""
        given = payload.keys()
        return self.required <= given and (self.takes_any or given <= self.names)

    def payload_of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The payload for a call with these arguments; refuses what the handler would refuse."""
        placed = dict(zip(self.positions, args, strict=False))
        if len(placed) == len(args) and placed.keys().isdisjoint(kwargs):
            placed.update(kwargs)
            if self.fits(placed):
                return placed
        raise InvalidPayload(
            f"the arguments do not match the handler: {self._misfit(args, kwargs)}"
        )

    def _misfit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """What Python says of them; to bind takes ten times as long as to see that they fit."""
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            return str(error)
        return f"{bound} cannot be passed by name"

    def example(self) -> str:
        """A payload with a made-up value for each required argument, as JSON text."""
        named = self.signature.parameters.items()
        return json.dumps({name: _sample(p) for name, p in named if name in self.required})


def read_signature(key: str, function: Callable[..., Any]) -> HandlerSignature:
    """What a function asks for; refuses kinds of parameters that a payload cannot fill."""
    parameters = list(inspect.signature(function).parameters.values())
    for parameter in parameters:
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise InvalidDefinition(
                f"{key}: the parameter {parameter.name!r} cannot be passed by name; "
                "a payload is a JSON object, so every parameter needs a name"
            )
    kept = [parameter for parameter in parameters if parameter.name != CONTEXT_NAME]
    named = [parameter for parameter in kept if parameter.kind is not parameter.VAR_KEYWORD]
    return HandlerSignature(
        signature=inspect.Signature(kept),
        positions=tuple(p.name for p in named if p.kind is p.POSITIONAL_OR_KEYWORD),
        names=frozenset(parameter.name for parameter in named),
        required=frozenset(p.name for p in named if p.default is p.empty),
        takes_any=len(named) < len(kept),
        wants_context=len(kept) < len(parameters),
    )


def _sample(parameter: inspect.Parameter) -> object:
    # By name, since the annotation is text where annotations are postponed.
    kind = parameter.annotation
    name = kind if isinstance(kind, str) else getattr(get_origin(kind) or kind, "__name__", "")
    return _SAMPLES.get(name.partition("[")[0], "Ada")


def choose_mode(key: str, function: Callable[..., Any], asked: str | None) -> ExecutionMode:
    """Async functions run in the event loop, plain ones in a thread unless asked otherwise."""
    is_async = inspect.iscoroutinefunction(function)
    if asked is None:
        return ExecutionMode.ASYNC if is_async else ExecutionMode.THREAD
    try:
        mode = ExecutionMode(asked)
    except ValueError as error:
        raise InvalidDefinition(
            f"{key}: mode must be 'async', 'thread' or 'process', not {asked!r}"
        ) from error
    if is_async != (mode is ExecutionMode.ASYNC):
        kind = "an async function" if is_async else "a regular function"
        raise InvalidDefinition(f"{key}: {kind} cannot run with mode={asked!r}")
    if mode is ExecutionMode.PROCESS and "<locals>" in function.__qualname__:
        raise InvalidDefinition(
            f"{key}: a function that runs in a process must be importable; define it at module "
            "level"
        )
    return mode
