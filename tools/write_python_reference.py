"""Writes docs/reference/python.md from the signatures and docstrings of the public names.

python tools/write_python_reference.py
"""

import dataclasses
import inspect
import json
import re
import textwrap
import types
import typing
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import timedelta
from enum import EnumMeta, StrEnum
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Final, NamedTuple

import mainspring
from mainspring import app, testing
from mainspring.client._sync.resources import Resources
from mainspring.domain import types as words
from mainspring.domain.jobs.backoff import Backoff
from mainspring.domain.jobs.options import EnqueueFields

PAGE: Final = Path(__file__).parents[1] / "docs" / "reference" / "python.md"
WIDTH: Final = 100
_HEAD: Final = """\
# Python

*Written by `make reference` from the docstrings in `src/mainspring/`.*

Everything a program can use, by noun; [the guide](../guides/python.md) shows how it fits together.
Names such as `Job` are imported from `mainspring`. `app` is a `Mainspring`, and `app.jobs` and the
other namespaces are its attributes.

- `list` / `alist` is one method in two forms with the same arguments: the first blocks, the second
  is awaited.
- `connection` is your own connection: the call becomes part of its transaction. See [which
  connections](../guides/python.md#in-your-own-transaction).
- An instant (`datetime`) needs a time zone.
- A filter of the type `str | Collection[str] | None` takes one value, or several as alternatives.
- A value, such as a `Job`, is shown with its fields, an enum with its members' values. Where an
  enum is expected, its value will do: `catch_up="all"`.
- Input that is refused, and an object that is not found, raise one of the [errors](errors.md).
"""


class Section(NamedTuple):
    """A noun. `names`, with spaces between them, are public names, `app.jobs`, `client.jobs`, or
    what public methods return, with its module."""

    title: str
    text: str
    names: str


SECTIONS: Final = (
    Section("Apps", "An app declares jobs and gives access to the database.", "Mainspring"),
    Section(
        "Jobs",
        "See [enqueueing](../guides/python.md#enqueueing), [results](../guides/python.md#results) "
        "and [managing jobs](../guides/python.md#reading-and-managing-jobs).",
        "JobFunction domain.jobs.options:EnqueueFields JobHandle app.jobs Job Attempt Progress "
        "JobState AttemptStatus domain.types:WaitsFor domain.types:Delivery Backoff",
    ),
    Section(
        "Handlers",
        "What a function gets as `ctx`, and what it may return; see [the "
        "guide](../guides/python.md#what-a-function-may-do).",
        "Context SlotInfo Snooze Cancel Fail JobCanceled",
    ),
    Section(
        "Schedules",
        "See the guide to [schedules](../guides/schedules.md).",
        "app.schedules ScheduleSpec ScheduleState Slot Triggered Fire SlotOutcome SlotTrigger "
        "CatchUp Overlap DstGap DstFold domain.schedules.conditions:Gauge "
        "domain.schedules.conditions:GaugeSide domain.schedules.conditions:GaugeBounds",
    ),
    Section(
        "Launchers",
        "Conditions of schedules in Python; see [conditions](../guides/conditions.md).",
        "Launcher Launch",
    ),
    Section(
        "Events",
        "See the guide to [events](../guides/events.md).",
        "app.events Event Dispatch DispatchOutcome",
    ),
    Section(
        "Triggers",
        "Rules that turn events into jobs; see [events](../guides/events.md).",
        "app.triggers Trigger TriggerState UnknownPaths",
    ),
    Section(
        "Flows",
        "Jobs that wait for each other; see the guide to [flows](../guides/flows.md).",
        "Flow Step FlowHandle app.flows FlowSummary FlowJob FlowState Parent",
    ),
    Section(
        "Approvals",
        "See the guide to [approvals](../guides/approvals.md).",
        "app.approvals Approval Vote",
    ),
    Section(
        "Definitions",
        "See [SQL functions](../guides/functions.md), [programs](../guides/commands.md) and "
        "[remote workers](../guides/remote.md) for those without Python code.",
        "app.definitions DefinitionState domain.definitions:Definition domain.types:Kind",
    ),
    Section(
        "Errors of jobs",
        "See the guide to [errors](../guides/errors.md).",
        "app.errors domain.error_groups:ErrorGroup domain.error_groups:ErrorDay",
    ),
    Section(
        "Limits",
        "See the guide to [limits](../guides/limits.md).",
        "app.limits LimitState domain.limits:Limit domain.limits:Rate",
    ),
    Section(
        "Figures",
        "See the guide to [figures](../guides/figures.md).",
        "app.figures domain.figures:FigureReport domain.figures:Series domain.figures:Figures "
        "domain.figures:Durations domain.figures:Range",
    ),
    Section(
        "Retention",
        "See the guide to [retention](../guides/retention.md).",
        "app.retention domain.retention:RetentionPolicy domain.retention:RetentionDay "
        "domain.retention:RetentionKind",
    ),
    Section(
        "Processes",
        "Workers, schedulers and servers; see the guide to [health](../guides/health.md).",
        "app.processes domain.processes:Process domain.processes:ProcessKind "
        "domain.processes:SystemStatus domain.processes:QueueAge",
    ),
    Section(
        "Tenants",
        "See the guide to [tenants](../guides/tenants.md).",
        "app.tenants TenantState domain.tenants:TenantContents",
    ),
    Section(
        "People and tokens",
        "Who may use the [REST API](../guides/api.md).",
        "app.people domain.access.tokens:Person app.tokens services.tokens:NewToken "
        "domain.access.tokens:Token domain.access.tokens:TokenState domain.access.roles:Role",
    ),
    Section(
        "Secrets",
        "See the guide to [secrets](../guides/secrets.md).",
        "app.secrets services.key_rotation:Rotation",
    ),
    Section(
        "Errors",
        "[All errors](errors.md), with their codes and whether to try again.",
        "MainspringError ApiError",
    ),
    Section(
        "Client",
        "The [REST API](../guides/api.md#from-python) from Python. `AsyncClient` has the same "
        "methods, to be awaited; its iterators are for `async for`. Results are models with the "
        "fields of the API's JSON. An iterator requests the next page when it is needed.",
        " ".join(["Client", *(f"client.{noun}" for noun in Resources.__annotations__)]),
    ),
    Section(
        "Testing", "The pytest plugin; see [testing](../guides/testing.md).", "mainspring.testing"
    ),
)
# What other layers call, or what takes and returns values that are not for programs.
INTERNAL: Final = frozenset(
    {
        *("Mainspring.register", "Mainspring.example_payload"),
        *("Mainspring.enqueue_payload", "Mainspring.enqueue_followup"),
        *("Client.call", "Client.send", "Client.pages", "Client.listen"),
        *("JobFunction.app", "ScheduleSpec.timing", "ScheduleSpec.misfires"),
    }
)
# What a program makes or describes; the others it only reads, and has no use for defaults.
_CONSTRUCTED: Final = frozenset({"Mainspring", "Client", "Launcher"})
_DESCRIBED: Final = frozenset({"Backoff", "Definition", "Limit", "ScheduleSpec", "Trigger"})
_OPTIONS: Final = "domain.jobs.options:EnqueueFields"
_TITLES: Final = {_OPTIONS: "Enqueue options", "Client": "`Client` / `AsyncClient`"}
_NEW_TYPES: Final = {
    name: kind.__supertype__.__name__
    for name, kind in vars(words).items()
    if isinstance(kind, typing.NewType)
}


# The page


def page() -> str:
    return "\n".join([_HEAD, *_contents(), *(line for each in SECTIONS for line in _section(each))])


def _contents() -> Iterator[str]:
    yield "| noun | names |\n|---|---|"
    for section in SECTIONS:
        links = ", ".join(
            f"[{_title(name)}](#{anchor(_title(name))})" for name in section.names.split()
        )
        yield f"| [{section.title}](#{anchor(section.title)}) | {links} |"
    yield ""


def anchor(heading: str) -> str:
    """The fragment by which a heading is linked."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _section(section: Section) -> Iterator[str]:
    yield from (f"## {section.title}", *_prose(section.text), "")
    for name in section.names.split():
        yield f"### {_title(name)}"
        yield from _entry(name)


def _title(name: str) -> str:
    return _TITLES.get(name) or f"`{name.rpartition(':')[2]}`"


def _entry(name: str) -> Iterator[str]:
    if name == _OPTIONS:
        return _options()
    if name == "mainspring.testing":
        return _testing()
    prefix = f"{name}." if _is_namespace(name) else "app." if name == "Mainspring" else ""
    return _class(found(name), prefix)


def _is_namespace(name: str) -> bool:
    return name.startswith(("app.", "client."))


def found(name: str) -> type:
    """The class that a name of a section stands for."""
    if _is_namespace(name):
        owner, _, noun = name.partition(".")
        home = {"app": "mainspring.app", "client": "mainspring.client._sync"}[owner]
        return _class_in(import_module(f"{home}.{noun}"), noun.title())
    home, _, own = name.rpartition(":")
    return _class_in(import_module(f"mainspring.{home}" if home else "mainspring"), own)


def _class_in(module: types.ModuleType, name: str) -> type:
    kind: type = getattr(module, name)
    return kind


def _options() -> Iterator[str]:
    yield from _prose(
        "Keyword arguments of `options`, `enqueue`, `enqueue_many` and `Flow.add`; [the "
        "guide](../guides/python.md#enqueueing) explains them."
    )
    yield ""
    hints = typing.get_type_hints(EnqueueFields)
    yield from _code("\n".join(f"{name}: {_type(hint)}" for name, hint in hints.items()))


def _testing() -> Iterator[str]:
    yield from ("Fixtures:", "")
    for name in fixtures():
        fixture = getattr(testing, name)
        made = _type(inspect.signature(inspect.unwrap(fixture)).return_annotation)
        yield _item(f"- `{name}: {_inner(made)}`", fixture.__doc__)
    yield ""
    functions = {
        name: each for name in testing.__all__ if inspect.isfunction(each := getattr(testing, name))
    }
    yield from _functions(functions, "")
    for name in testing.__all__:
        if inspect.isclass(kind := getattr(testing, name)):
            yield f"#### `{name}`"
            yield from _class(kind, "")


def fixtures() -> list[str]:
    """The names of the fixtures of the pytest plugin."""
    return [name for name in vars(testing) if name.startswith("mainspring_")]


# Classes


def _class(kind: type, prefix: str) -> Iterator[str]:
    if isinstance(kind, EnumMeta):
        yield from (*_prose(_doc(kind)), "", _values(kind), "")
        return
    if shown := _constructor(kind):
        yield from _code(shown)
    yield from (*_prose(_doc(kind)), "")
    attributes = list(_attributes(kind))
    yield from (*attributes, "") if attributes else ()
    if kind is mainspring.Mainspring:
        yield from _shortcuts()
    yield from _functions(methods(kind), prefix or f"{kind.__name__}.", is_bound=True)


def _values(kind: type) -> str:
    members = typing.cast("type[StrEnum]", kind)
    return ", ".join(f"`{member.value}`" for member in members)


def _constructor(kind: type) -> str:
    if kind.__name__ in _CONSTRUCTED:
        signature = inspect.signature(kind.__init__)  # type: ignore[misc]
        return _call(kind.__name__, list(signature.parameters.values())[1:], "")
    if dataclasses.is_dataclass(kind):
        fields = [each for each in dataclasses.fields(kind) if each.name[0] != "_"]
        parts = [_field(each, with_default=kind.__name__ in _DESCRIBED) for each in fields]
        return _joined(kind.__name__, parts, "")
    if issubclass(kind, tuple):
        hints = typing.get_type_hints(kind)
        return _joined(kind.__name__, [f"{name}: {_type(hints[name])}" for name in hints], "")
    return ""


def _field(field: "dataclasses.Field[Any]", *, with_default: bool) -> str:
    said = f"{field.name}: {_type(field.type)}"
    if not with_default:
        return said
    if field.default is not dataclasses.MISSING:
        return f"{said} = {_value(field.default)}"
    if field.default_factory is not dataclasses.MISSING:
        return f"{said} = {_value(field.default_factory())}"
    return said


def _attributes(kind: type) -> Iterator[str]:
    """What can be read of an object, but for the fields of a value and the nouns of an app."""
    if not dataclasses.is_dataclass(kind) and not issubclass(kind, tuple):
        for name, hint in inspect.get_annotations(kind).items():
            if name[0] != "_":
                yield f"- `{name}: {_type(hint)}`"
    for name, member in vars(kind).items():
        if isinstance(member, property) and _is_public(kind, name):
            hint = inspect.signature(_getter(member)).return_annotation
            yield _item(f"- `{name}: {_type(hint)}`", member.__doc__)


def _item(said: str, doc: str | None) -> str:
    text = f"{said}: {' '.join(doc.split())}" if doc else said
    return textwrap.fill(text, WIDTH, subsequent_indent="  ", **_WHOLE)


def _getter(member: property) -> Callable[..., Any]:
    return typing.cast("Callable[..., Any]", member.fget)


def _shortcuts() -> Iterator[str]:
    yield "In short:"
    yield ""
    for name, (noun, method) in app._SHORTCUTS.items():
        yield f"- `app.{name}` is [`app.{noun}.{method}`](#app{noun})."
    yield ""


# Methods and functions


def methods(kind: type) -> dict[str, Any]:
    """The public methods of a class and its bases, in the order in which they are written."""
    every: dict[str, Any] = {}
    for each in kind.__mro__:
        for name, member in vars(each).items():
            if inspect.isfunction(member) and _is_public(kind, name):
                every.setdefault(name, member)
    return every


def _is_public(kind: type, name: str) -> bool:
    names = (name, name.removeprefix("a"))
    return name[0] != "_" and not INTERNAL & {f"{kind.__name__}.{each}" for each in names}


def _functions(
    functions: Mapping[str, Any], prefix: str, *, is_bound: bool = False
) -> Iterator[str]:
    for name, twin in pairs(functions).items():
        title = f"`{prefix}{name}`" + (f" / `{twin}`" if twin and twin != name else "")
        yield f"#### {title}"
        yield from _code("\n".join(_signatures(name, functions[name], is_bound=is_bound)))
        yield from (*_prose(_best_doc(functions[name], functions.get(twin or ""))), "")


def pairs(functions: Mapping[str, Any]) -> dict[str, str | None]:
    """Each function by name with the name of its async twin, if it has one."""
    every: dict[str, str | None] = {}
    for name, function in functions.items():
        blocking = name[1:]
        if name[0] == "a" and blocking in functions and inspect.iscoroutinefunction(function):
            every[blocking] = name
        else:
            every.setdefault(name, None)
    return every


def _best_doc(function: Any, twin: Any) -> str:
    """That of the two which does not only name the other."""
    docs = [_doc(each) for each in (function, twin) if each is not None]
    return next((doc for doc in docs if " version of `" not in doc.partition("\n")[0]), docs[0])


def _doc(documented: Any) -> str:
    """Empty if there is none; a value without one has its signature instead."""
    doc = documented.__doc__ or ""
    return "" if doc.startswith(f"{documented.__name__}(") else inspect.cleandoc(doc)


def undocumented(kind: type) -> Iterator[str]:
    """The class and its public methods, so far as they have no docstring."""
    if not _doc(kind):
        yield kind.__name__
    for name, member in methods(kind).items():
        if not _doc(member):
            yield f"{kind.__name__}.{name}"


def _signatures(name: str, function: Any, *, is_bound: bool) -> list[str]:
    """One, or that of each overload that has parameters of its own."""
    shown: dict[tuple[str, ...], str] = {}
    for each in typing.get_overloads(function) or [function]:
        signature = inspect.signature(each)
        parameters = [*signature.parameters.values()][is_bound:]
        parameters = [each for each in parameters if each.name[0] != "_"]
        call = _call(name, parameters, _returned(each, signature.return_annotation))
        shown[tuple(each.name for each in parameters)] = call
    return list(shown.values())


def _returned(function: Any, annotation: Any) -> str:
    if typing.get_origin(annotation) is Generator:  # A plan, which the method carries out.
        annotation = typing.get_args(annotation)[-1]
    returned, inner = _type(annotation), inspect.unwrap(function)
    if inner is not function and inspect.isasyncgenfunction(inner):
        return f" -> AbstractAsyncContextManager[{_inner(returned)}]"
    if inner is not function and inspect.isgeneratorfunction(inner):
        return f" -> AbstractContextManager[{_inner(returned)}]"
    return f" -> {returned}"


def _inner(generic: str) -> str:
    """The argument of a generic type that has one, or the type itself."""
    return generic.partition("[")[2].removesuffix("]") or generic


def _call(name: str, parameters: Sequence[inspect.Parameter], returned: str) -> str:
    parts: list[str] = []
    for number, each in enumerate(parameters):
        before = parameters[number - 1].kind if number else None
        if before is each.POSITIONAL_ONLY and each.kind is not before:
            parts.append("/")
        if each.kind is each.KEYWORD_ONLY and before not in (each.kind, each.VAR_POSITIONAL):
            parts.append("*")
        parts.append(_parameter(each))
    if parameters and parameters[-1].kind is inspect.Parameter.POSITIONAL_ONLY:
        parts.append("/")
    return _joined(name, parts, returned)


def _parameter(parameter: inspect.Parameter) -> str:
    name = str(parameter.replace(annotation=parameter.empty, default=parameter.empty))
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        is_said = isinstance(parameter.annotation, str | type) and parameter.annotation is not Any
        return f"{name}: {_type(parameter.annotation)}" if is_said else name
    said = f"{name}: {_type(parameter.annotation)}"
    return said if parameter.default is parameter.empty else f"{said} = {_value(parameter.default)}"


def _joined(name: str, parts: Sequence[str], returned: str) -> str:
    line = f"{name}({', '.join(parts)}){returned}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {part}," for part in parts), f"){returned}"])


# Types and values


def _type(hint: Any) -> str:
    """As it would be written, with plain types in place of the ids."""
    match hint:
        case str():
            return re.sub(r"\w+", lambda word: _NEW_TYPES.get(word[0], word[0]), hint)
        case typing.ForwardRef():
            return _type(hint.__forward_arg__)
        case typing.NewType():
            return _type(hint.__supertype__)
        case typing.TypeVar() if hint.__bound__ is not None:
            return _type(hint.__bound__)
        case list():
            return f"[{_types(hint)}]"
    return _generic(hint) if typing.get_origin(hint) else _PLAIN.get(hint) or str(hint.__name__)


_PLAIN: Final = {None: "None", types.NoneType: "None", ...: "..."}


def _generic(hint: Any) -> str:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " | ".join(_type(each) for each in arguments)
    if origin is typing.Literal:
        return f"Literal[{', '.join(_value(each) for each in arguments)}]"
    if origin is ClassVar:
        return _type(arguments[0])
    return f"{origin.__name__}[{_types(arguments)}]"


def _types(hints: Sequence[Any]) -> str:
    return ", ".join(_type(each) for each in hints)


def _value(value: Any) -> str:
    match value:
        case str():
            return json.dumps(str(value))
        case timedelta():
            return _duration(value)
        case int() if not isinstance(value, bool):
            return f"{value:_}"
        case Backoff():
            return "Backoff()"
    return repr(value)


def _duration(duration: timedelta) -> str:
    for unit in ("days", "hours", "minutes", "seconds"):
        count, rest = divmod(duration, timedelta(**{unit: 1}))
        if count and not rest:
            return f"timedelta({unit}={count})"
    return "timedelta(0)" if not duration else f"timedelta(seconds={duration.total_seconds():g})"


# Text

_WHOLE: Final[Mapping[str, Any]] = {"break_long_words": False, "break_on_hyphens": False}


def _prose(text: str) -> Iterator[str]:
    paragraphs = [" ".join(each.split()) for each in text.split("\n\n") if each.strip()]
    yield from "\n\n".join(textwrap.fill(each, WIDTH, **_WHOLE) for each in paragraphs).split("\n")


def _code(text: str) -> Iterator[str]:
    yield from ("```", *text.split("\n"), "```", "")


if __name__ == "__main__":
    PAGE.write_text(page())
