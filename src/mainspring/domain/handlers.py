"""Python functions as handlers: what their signature says, checked when they are registered."""

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, get_args, get_origin

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
    _ensure_bound(key, function, parameters)
    for parameter in parameters:
        if parameter.name != CONTEXT_NAME and _is_context(parameter.annotation, function):
            raise InvalidDefinition(
                f"{key}: the parameter {parameter.name!r} is a Context, but the context is passed "
                f"only to a parameter named {CONTEXT_NAME}; rename it: {CONTEXT_NAME}: Context"
            )
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


def ensure_function(function: object) -> None:
    """Refuse what has no name and code of its own."""
    if isinstance(function, str):
        raise InvalidDefinition(f"@app.job({function!r}): write @app.job(key={function!r})")
    if isinstance(function, classmethod | staticmethod):
        kind = type(function).__name__
        raise InvalidDefinition(
            f"a {kind} cannot be a handler inside its class; use a function, or register it "
            "below the class"
        )
    is_function = callable(function) and hasattr(function, "__name__")
    if not is_function or inspect.isclass(function):
        kind = "the class" if inspect.isclass(function) else type(function).__name__
        name = getattr(function, "__name__", repr(function))
        raise InvalidDefinition(
            f"a handler must be a function, not {kind} {name}; define a function that calls it"
        )


def ensure_plain_worker(key: str, function: Callable[..., Any]) -> None:
    """Refuse a function that cannot be called as worker(job_data, job_id, queue)."""
    ensure_function(function)
    signature = inspect.signature(function)
    _ensure_bound(key, function, list(signature.parameters.values()))
    try:
        signature.bind({}, "", None)
    except TypeError as error:
        raise InvalidDefinition(
            f"{key}: {function.__name__}{signature} cannot be called as worker(job_data, job_id, "
            f"queue): {error}; write def {function.__name__}(job_data, job_id, queue)"
        ) from None
    if inspect.iscoroutinefunction(function):
        raise InvalidDefinition(
            f"{key}: worker(job_data, job_id, queue) must be a regular function; register an async "
            "one with @app.job"
        )


def _ensure_bound(
    key: str, function: Callable[..., Any], parameters: list[inspect.Parameter]
) -> None:
    if parameters and parameters[0].name in ("self", "cls"):
        owner = function.__qualname__.rpartition(".")[0].rpartition(".")[2] or "TheClass"
        raise InvalidDefinition(
            f"{key}: {function.__qualname__} is a method without its object; register that of an "
            f"object, {owner}(...).{function.__name__}, or a function"
        )


def _is_context(annotation: Any, function: Callable[..., Any]) -> bool:
    """Whether a parameter is annotated as our Context, alone or with None."""
    if isinstance(annotation, str):
        # Postponed annotations; what cannot be resolved yet is none of ours.
        known = getattr(inspect.unwrap(function), "__globals__", {})
        names = (part.strip() for part in annotation.replace("Optional[", "").split("|"))
        return any(_is_context(known.get(name.strip("\"'] ")), function) for name in names)
    if get_args(annotation):
        return any(_is_context(part, function) for part in get_args(annotation))
    module = str(getattr(annotation, "__module__", ""))
    return getattr(annotation, "__name__", "") == "Context" and module.startswith("mainspring.")


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
