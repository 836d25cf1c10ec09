"""Jobs as Python objects: functions that can be enqueued, and handles of enqueued jobs."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from mainspring.app.model_schemas import describe_model
from mainspring.app.namespaces import App
from mainspring.domain.argument_schemas import describe_arguments
from mainspring.domain.definitions import Definition, Handler, fill_in_attempts
from mainspring.domain.errors import InvalidDefinition, InvalidOption
from mainspring.domain.handlers import (
    HandlerSignature,
    choose_mode,
    ensure_function,
    read_signature,
)
from mainspring.domain.jobs.model import Job
from mainspring.domain.jobs.options import EnqueueFields, EnqueueOptions
from mainspring.domain.suggestions import did_you_mean
from mainspring.domain.types import JobId, TenantId
from mainspring.runtime.worker.context import Context
from mainspring.services import jobs as services
from mainspring.services.enqueueing import DEFAULT_OPTIONS

P = ParamSpec("P")
R = TypeVar("R")

_DECLARABLE = frozenset(Definition.__dataclass_fields__) - {"key", "kind", "spec"}
_OPTION_NAMES = frozenset(EnqueueOptions.__dataclass_fields__) | {"connection"}


@dataclass(frozen=True, slots=True)
class JobHandle:
    """An enqueued job; `is_new` is False if it is an earlier one with the same key."""

    id: JobId
    is_new: bool
    tenant_id: TenantId
    _app: App

    async def aresult(self, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - in the API
        """Wait for the job and return its result; `timeout` is in seconds, None waits forever.
        Raises ResultTimeout, and JobUnsuccessful if the job ended without success."""
        return await services.wait_for_result(
            self._app.database, self.id, self.tenant_id, seconds=timeout
        )

    def result(self, timeout: float | None = None) -> Any:
        """Blocking version of `aresult`."""
        return self._app.blocking(self.aresult(timeout))

    async def ajob(self) -> Job:
        """The job as it is now; raises JobNotFound once it was pruned."""
        return await services.get(self._app.database, self.id, self.tenant_id)

    def job(self) -> Job:
        """Blocking version of `ajob`."""
        return self._app.blocking(self.ajob())

    def __repr__(self) -> str:
        return f"<job {self.id}{'' if self.is_new else ' (existing)'}>"


class JobFunction(Generic[P, R]):
    """A registered handler: call it like the function it is, or enqueue it."""

    def __init__(self, app: App, handler: Handler, signature: HandlerSignature) -> None:
        self.handler = handler
        self.function: Callable[..., Any] = handler.function
        self.signature = signature
        self.given: dict[str, Any] = {}  # The enqueue options that were chosen, as they were given.
        self._app = app
        self._options = DEFAULT_OPTIONS
        self.__doc__ = handler.function.__doc__
        self.__name__ = handler.function.__name__
        self.__qualname__ = handler.function.__qualname__
        self.__module__ = handler.function.__module__
        self.__wrapped__ = handler.function

    @property
    def key(self) -> str:
        return self.handler.definition.key

    @property
    def app(self) -> App:
        return self._app

    def __call__(self, *args: Any, **kwargs: Any) -> R:
        result: R = self.function(*args, **kwargs)
        return result

    def options(
        self, *, connection: object = None, **options: Unpack[EnqueueFields]
    ) -> "JobFunction[P, R]":
        """The same job with these enqueue options besides those it has; its arguments are still
        type-checked."""
        chosen: JobFunction[P, R] = JobFunction(self._app, self.handler, self.signature)
        if not options.get("tenant_id"):
            options.pop("tenant_id", None)
        chosen.given = {**self.given, **options}
        if connection is not None:
            chosen.given["connection"] = connection
        chosen._options = make_options(without_connection(chosen.given))
        return chosen

    @overload
    def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle: ...
    @overload
    def enqueue(self, *args: Any, connection: object, **kwargs: Any) -> JobHandle: ...
    @overload
    def enqueue(
        self, *args: Any, after: "Sequence[JobHandle | int]", **kwargs: Any
    ) -> JobHandle: ...
    def enqueue(self, *args: Any, **kwargs: Any) -> JobHandle:
        """Enqueue the function with these arguments. Enqueue options can be among them unless the
        function has an argument of that name; with `connection=` the job is part of its
        transaction."""
        chosen, payload = self._split(args, kwargs)
        return chosen._app.enqueue_payload(
            chosen.key, payload, chosen._options, connection=chosen.given.get("connection")
        )

    @overload
    async def aenqueue(self, *args: P.args, **kwargs: P.kwargs) -> JobHandle: ...
    @overload
    async def aenqueue(self, *args: Any, connection: object, **kwargs: Any) -> JobHandle: ...
    @overload
    async def aenqueue(
        self, *args: Any, after: "Sequence[JobHandle | int]", **kwargs: Any
    ) -> JobHandle: ...
    async def aenqueue(self, *args: Any, **kwargs: Any) -> JobHandle:
        """Async version of `enqueue`."""
        chosen, payload = self._split(args, kwargs)
        return await chosen._app.aenqueue_payload(
            chosen.key, payload, chosen._options, connection=chosen.given.get("connection")
        )

    def _split(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> "tuple[JobFunction[P, R], dict[str, Any]]":
        """Options may be written among the arguments where the handler has none of that name."""
        chosen = self
        if kwargs and (mixed := kwargs.keys() & _OPTION_NAMES):
            asked = {name: kwargs.pop(name) for name in mixed if name not in self.signature.names}
            chosen = self.options(**asked) if asked else self
        return chosen, self.signature.payload_of(args, kwargs)

    def __repr__(self) -> str:
        return f"<job function {self.key}>"


class JobDecorator:
    """`@app.job(...)` with options."""

    def __init__(self, app: App, options: dict[str, Any]) -> None:
        self._app, self._options = app, options

    @overload
    def __call__(self, function: Callable[Concatenate[Context, P], R]) -> JobFunction[P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R]) -> JobFunction[P, R]: ...
    def __call__(self, function: Callable[..., Any]) -> Any:
        ensure_function(function)
        options = dict(self._options)
        key = options.pop("key", None)
        key = function.__name__ if key is None else key
        mode = choose_mode(key, function, options.pop("mode", None))
        signature = read_signature(key, function)
        definition = make_definition(key, function, options)
        if definition.arg_schema is None:
            document = describe_arguments(signature, function, describe_model)
            definition = replace(definition, arg_schema=document)
        handler = Handler(
            definition,
            function,
            mode,
            wants_context=signature.wants_context,
        )
        self._app.register(handler)
        job: JobFunction[..., Any] = JobFunction(self._app, handler, signature)
        self._app.functions[key] = job
        return job


def given_of(job: "JobFunction[..., Any] | str") -> dict[str, Any]:
    """The enqueue options that were chosen with the job."""
    return job.given if isinstance(job, JobFunction) else {}


def without_connection(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name != "connection"}


def checked(
    job: "JobFunction[..., Any] | str", payload: dict[str, Any]
) -> tuple[str, dict[str, Any]]:
    """The key, and the payload as the handler takes it where the handler is known."""
    if isinstance(job, JobFunction):
        return job.key, job.signature.payload_of((), payload)
    return job, payload


def make_definition(key: str, function: Callable[..., Any], options: dict[str, Any]) -> Definition:
    unknown = options.keys() - _DECLARABLE
    if unknown:
        name = sorted(unknown)[0]
        hint = did_you_mean(name, _DECLARABLE)
        raise InvalidDefinition(f"{key}: there is no option {name}{hint}")
    given = {name: value for name, value in options.items() if value is not None}
    for name in ("tags", "approvers"):
        if isinstance(given.get(name), Iterable) and not isinstance(given[name], str):
            given[name] = tuple(given[name])
    fill_in_attempts(given)
    given.setdefault("description", (function.__doc__ or "").strip().partition("\n")[0])
    return Definition(key=key, **given)


def option_names() -> frozenset[str]:
    """The names of all options of an enqueue."""
    return _OPTION_NAMES


def make_options(given: dict[str, Any]) -> EnqueueOptions:
    if not given:
        return DEFAULT_OPTIONS
    for name in given:
        if name not in _OPTION_NAMES:
            hint = did_you_mean(name, _OPTION_NAMES)
            raise InvalidOption(name, f"is not an enqueue option{hint}")
    tags = given.get("tags", ())
    if isinstance(tags, str) or not isinstance(tags, Iterable):
        raise InvalidOption("tags", f"must be a list of strings, not {tags!r}")
    read = {"tags": tuple(tags), "after": job_ids(given.get("after", ()))}
    return replace(DEFAULT_OPTIONS, **{**given, **read})


def job_ids(jobs: "Sequence[JobHandle | int]") -> tuple[JobId, ...]:
    """The ids of jobs given as handles or numbers."""
    if isinstance(jobs, JobHandle | int):
        raise InvalidOption("after", "must be a list of jobs")
    given = [job.id if isinstance(job, JobHandle) else job for job in jobs]
    for job in given:
        if not isinstance(job, int) or isinstance(job, bool):
            raise InvalidOption("after", f"must be a list of jobs, not of {type(job).__name__}")
    return tuple(JobId(job) for job in given)
