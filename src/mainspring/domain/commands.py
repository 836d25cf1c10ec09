"""Commands: an argv from a template, a payload and its job, never a shell.

["rsync-photos", "--tenant", "{job.tenant}", ["--limit={limit}"], "--", "{folder}"]

A text is one argument. `{name}` stands for that field of the payload, alone or behind a literal
beginning; `{job.tenant}` and its like for what the job is, whatever the payload holds. Arguments in
a list of their own are left out if the payload lacks a field they name. What a payload gives can
become neither an option nor two arguments.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

from mainspring.domain.errors import InvalidDefinition, InvalidPayload
from mainspring.domain.schema_fields import known_fields
from mainspring.domain.suggestions import did_you_mean

_JOB = "job."
_PLACEHOLDER = re.compile(r"\{((?:job\.)?[A-Za-z_][A-Za-z0-9_]*)\}")
MOST_ARGUMENTS = 1000
LONGEST_ARGUMENT = 10_000
MOST_VARIABLES = 100
_LONGEST_PATH = 500
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,499}")
_END_OF_OPTIONS = "--"


class CommandJob(Protocol):
    """A job, as far as its command may know it."""

    @property
    def id(self) -> int: ...
    @property
    def tenant_id(self) -> str: ...
    @property
    def definition(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def queue(self) -> str: ...


RESERVED: Mapping[str, Callable[[CommandJob], str]] = MappingProxyType(
    {
        "job.tenant": lambda job: job.tenant_id,
        "job.id": lambda job: str(job.id),
        "job.definition": lambda job: job.definition,
        "job.attempt": lambda job: str(job.attempt),
        "job.queue": lambda job: job.queue,
    }
)
"""Placeholders that the payload cannot set."""

# Fields of a payload that are likely to be taken for what the job is.
_MISTAKABLE: Mapping[str, str] = MappingProxyType(
    {"tenant": "job.tenant", "tenant_id": "job.tenant", "job_id": "job.id"}
)


@dataclass(frozen=True, slots=True)
class Argument:
    """A literal, a field of the payload or of the job, or such a field behind a literal."""

    literal: str
    field: str | None = None
    job_field: str | None = None


@dataclass(frozen=True, slots=True)
class ArgvTemplate:
    """The arguments after the executable; those of a group come all or not at all."""

    executable: str
    groups: tuple[tuple[Argument, ...], ...]
    optional: frozenset[int]

    @property
    def fields(self) -> frozenset[str]:
        return frozenset(
            argument.field for group in self.groups for argument in group if argument.field
        )

    def arguments(self, payload: Mapping[str, Any], job: CommandJob) -> list[str]:
        """The argv without the executable; raises InvalidPayload with the field that is wrong."""
        built: list[str] = []
        for number, group in enumerate(self.groups):
            missing = [each.field for each in group if each.field and _is_missing(payload, each)]
            if missing and number in self.optional:
                continue
            if missing:
                raise InvalidPayload(f"the payload lacks {missing[0]!r}, which the command needs")
            for argument in group:
                after_options = _END_OF_OPTIONS in built
                built.append(_build(argument, payload, job, after_options=after_options))
        return built


def read_argv(key: str, argv: object) -> ArgvTemplate:
    """The template; refuses what could not be understood, or not safely."""
    if not isinstance(argv, Sequence) or isinstance(argv, str) or not argv:
        raise InvalidDefinition(
            f"{key}: argv must be a list of arguments, the command first", field="argv"
        )
    _ensure_affordable(key, argv)
    executable, *rest = argv
    if not isinstance(executable, str) or not executable or "{" in executable:
        raise InvalidDefinition(
            f"{key}: argv must begin with the name or path of a program, not {executable!r}",
            field="argv",
        )
    groups = tuple(_read_group(key, item) for item in rest)
    optional = frozenset(number for number, item in enumerate(rest) if not isinstance(item, str))
    if any("\x00" in text for text in _texts(argv)):
        raise InvalidDefinition(f"{key}: argv contains a NUL byte", field="argv")
    return ArgvTemplate(executable, groups, optional)


def _ensure_affordable(key: str, argv: Sequence[Any]) -> None:
    items = [item if isinstance(item, list | tuple) else [item] for item in argv]
    if sum(map(len, items)) > MOST_ARGUMENTS:
        raise InvalidDefinition(
            f"{key}: argv has more than {MOST_ARGUMENTS} arguments", field="argv"
        )
    texts = (text for item in items for text in item if isinstance(text, str))
    if any(len(text) > LONGEST_ARGUMENT for text in texts):
        raise InvalidDefinition(
            f"{key}: argv has an argument of more than {LONGEST_ARGUMENT:,} characters",
            field="argv",
        )


def _read_group(key: str, item: object) -> tuple[Argument, ...]:
    if isinstance(item, str):
        return (_read(key, item),)
    if not isinstance(item, Sequence) or not item:
        raise InvalidDefinition(
            f"{key}: an argument must be a string or a list of strings, not {item!r}", field="argv"
        )
    if not all(isinstance(part, str) for part in item):
        raise InvalidDefinition(
            f"{key}: an argument must be a string or a list of strings, not {item!r}", field="argv"
        )
    group = tuple(_read(key, part) for part in item)
    if not any(argument.field for argument in group):
        raise InvalidDefinition(
            f"{key}: the optional arguments {list(item)} name no field of the payload", field="argv"
        )
    return group


def _read(key: str, text: str) -> Argument:
    found = list(_PLACEHOLDER.finditer(text))
    if not found:
        if "{" in text or "}" in text:
            raise InvalidDefinition(
                f"{key}: {text!r} has a brace but no field such as {{folder}}", field="argv"
            )
        return Argument(text)
    last = found[-1]
    if len(found) > 1 or last.end() != len(text):
        raise InvalidDefinition(
            f"{key}: in {text!r} a field must be the whole argument or the end of it, as in "
            f"--limit={{limit}}",
            field="argv",
        )
    literal, name = text[: last.start()], last.group(1)
    _ensure_value(key, text, literal)
    if not name.startswith(_JOB):
        return Argument(literal, name)
    if name not in RESERVED:
        hint = did_you_mean(name, RESERVED) or f"; choose from {', '.join(RESERVED)}"
        raise InvalidDefinition(
            f"{key}: {text!r} names {name}, which no job has{hint}", field="argv"
        )
    return Argument(literal, job_field=name)


def _ensure_value(key: str, text: str, literal: str) -> None:
    """Refuse a field that would choose the option, or add others to it as in `tar -x{more}`."""
    if literal.startswith("-") and "=" not in literal:
        raise InvalidDefinition(
            f"{key}: in {text!r} the payload would choose the option; write the option out and the "
            'field as its value, as in "--limit={limit}" or "-n", "{limit}"',
            field="argv",
        )


def _build(
    argument: Argument, payload: Mapping[str, Any], job: CommandJob, *, after_options: bool
) -> str:
    if argument.job_field is not None:
        value = RESERVED[argument.job_field](job)
    elif argument.field is not None:
        value = _text(argument.field, payload[argument.field])
    else:
        return argument.literal
    if not argument.literal and value.startswith("-") and not after_options:
        name = argument.field or argument.job_field
        raise InvalidPayload(
            f"{name!r} starts with a dash and could be mistaken for an option; a "
            f"definition can allow it with --name={{{name}}} or after a --"
        )
    return argument.literal + value


def _text(field: str, value: object) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            if "\x00" in value:
                raise InvalidPayload(f"{field!r} contains a NUL byte")
            return value
        case int() | float():
            return str(value)
        case _:
            raise InvalidPayload(
                f"{field!r} must be a string, a number or a boolean to be used as an argument"
            )


def _is_missing(payload: Mapping[str, Any], argument: Argument) -> bool:
    return payload.get(argument.field or "") is None


def _texts(items: Sequence[Any]) -> Iterator[str]:
    for item in items:
        if isinstance(item, str):
            yield item
        else:
            yield from item


@dataclass(frozen=True, slots=True)
class Command:
    """What a definition of the kind `command` runs, and how its end is to be understood."""

    template: ArgvTemplate
    executable: str
    working_directory: str | None
    environment: tuple[str, ...]
    success_codes: frozenset[int]
    fail_codes: frozenset[int]


def read_command(key: str, spec: Mapping[str, Any]) -> Command:
    """The command of a definition; `executable` is the program's path, once it is pinned."""
    template = read_argv(key, spec.get("argv"))
    success = _codes(key, "success_codes", spec.get("success_codes", [0]))
    fail = _codes(key, "fail_codes", spec.get("fail_codes", []))
    if both := success & fail:
        raise InvalidDefinition(
            f"{key}: the exit code {min(both)} cannot mean both success and failure",
            field="success_codes",
        )
    directory = spec.get("working_directory")
    if directory is not None and not (isinstance(directory, str) and directory.startswith("/")):
        raise InvalidDefinition(
            f"{key}: working_directory must be an absolute path", field="working_directory"
        )
    if directory is not None and len(directory) > _LONGEST_PATH:
        raise InvalidDefinition(
            f"{key}: working_directory must be at most {_LONGEST_PATH} characters",
            field="working_directory",
        )
    return Command(
        template,
        spec.get("executable", template.executable),
        directory,
        _names(key, spec.get("environment", [])),
        success,
        fail,
    )


def ensure_fields_known(key: str, template: ArgvTemplate, schema: Mapping[str, Any] | None) -> None:
    """Refuse a field that no payload has, where the JSON Schema says which there are; and one that
    looks as if it came from the job, unless the schema names it."""
    known = None if schema is None else known_fields(schema)
    if known is None:
        _ensure_none_mistakable(key, template)
        return
    for name in sorted(template.fields - known):
        hint = did_you_mean(name, [*known, *RESERVED]) or f"; there are {_listed(known)}"
        raise InvalidDefinition(
            f"{key}: argv names {{{name}}}, which is not a property of arg_schema{hint}",
            field="argv",
        )


def _ensure_none_mistakable(key: str, template: ArgvTemplate) -> None:
    for name in sorted(template.fields & _MISTAKABLE.keys()):
        raise InvalidDefinition(
            f"{key}: argv names {{{name}}}, which whoever enqueues could choose; write "
            f"{{{_MISTAKABLE[name]}}}, or make {name} a property of arg_schema",
            field="argv",
        )


def _listed(known: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in (*sorted(known), *RESERVED))


def _codes(key: str, field: str, codes: object) -> frozenset[int]:
    if not isinstance(codes, Sequence) or isinstance(codes, str):
        raise InvalidDefinition(f"{key}: {field} must be a list of exit codes", field=field)
    for code in codes:
        if isinstance(code, bool) or not isinstance(code, int) or code not in range(256):
            raise InvalidDefinition(
                f"{key}: {field} must contain numbers from 0 to 255, not {code!r}", field=field
            )
    return frozenset(codes)


def _names(key: str, names: object) -> tuple[str, ...]:
    if not isinstance(names, Sequence) or isinstance(names, str):
        raise InvalidDefinition(
            f"{key}: environment must be a list of variable names", field="environment"
        )
    if len(names) > MOST_VARIABLES:
        raise InvalidDefinition(
            f"{key}: environment has more than {MOST_VARIABLES} variables", field="environment"
        )
    for name in names:
        if not (isinstance(name, str) and _VARIABLE.fullmatch(name)):
            raise InvalidDefinition(
                f"{key}: {name!r} is not the name of an environment variable", field="environment"
            )
    return tuple(names)
