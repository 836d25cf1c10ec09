"""Commands that refuse what Click would accept or explain badly, on every command alike."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from mainspring.domain.plain_words import plain
from mainspring.domain.suggestions import did_you_mean

if TYPE_CHECKING:
    from typer._click import Command, Context


class StrictCommand(TyperCommand):
    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        ensure_sound(self, ctx, args)
        with plain_words():
            return super().parse_args(ctx, args)


class StrictGroup(TyperGroup):
    def parse_args(self, ctx: "Context", args: list[str]) -> list[str]:
        ensure_sound(self, ctx, args)
        with plain_words():
            return super().parse_args(ctx, args)


@contextmanager
def plain_words() -> Iterator[None]:
    """Values are read by pydantic, whose words for a wrong one are for programmers."""
    try:
        yield
    except typer.BadParameter as error:
        error.message = plain(error.message)
        raise


def make_strict(app: typer.Typer) -> typer.Typer:
    """The same, with our class for each command; its groups have no options of their own."""
    for command in app.registered_commands:
        command.cls = StrictCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            make_strict(group.typer_instance)
    return app


def ensure_sound(command: "Command", ctx: "Context", args: list[str]) -> None:
    """Parse without acting: Click keeps the last value of an option, and lists every option whose
    name resembles an unknown one."""
    if ctx.resilient_parsing:
        return
    known = [name for option in command.get_params(ctx) for name in option.opts]
    # A copy, since the parser takes away what it has read.
    try:
        _, _, order = command.make_parser(ctx).parse_args([*args])
    except typer.BadParameter.__base__ as error:  # type: ignore[misc] # UsageError
        raise _explained(error, known) from None
    for option, times in Counter(order).items():
        if times > 1 and _takes_one_value(option):
            name = max(option.opts, key=len)
            ctx.fail(f"{name} takes one value and is given {times} times")


def _takes_one_value(option: Any) -> bool:
    return isinstance(option, TyperOption) and not (option.multiple or option.is_flag)


def _explained(error: Any, known: list[str]) -> Any:
    """The same, with the best match alone if it is about an unknown option."""
    if getattr(error, "possibilities", None):
        error.message += did_you_mean(error.option_name, known)
        error.possibilities = None
    return error
