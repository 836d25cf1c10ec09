"""`mainspring config`: Show, change and check settings."""

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from mainspring.cli import output
from mainspring.cli.columns import Columns
from mainspring.cli.examples import example
from mainspring.cli.listings import Cell, Listing
from mainspring.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir
from mainspring.cli.output import Format, Out, OutputFormat
from mainspring.domain.errors import InputError, SettingsError
from mainspring.services import settings as services
from mainspring.services.settings import Entry
from mainspring.settings import file as settings_file
from mainspring.settings.file import SettingsFile
from mainspring.settings.model import NAMES, SECRETS
from mainspring.settings.rules import Finding, Level, variable
from mainspring.settings.sources import check_value, no_such_setting, read_environment

_STYLES = {Level.ERROR: "red", Level.WARNING: "yellow"}
_OF_DATABASES = {"database_url", "condition_database_url", "role_urls", "data_dir"}

app = typer.Typer()
config = typer.Typer(help="Show, change and check settings.", no_args_is_help=True)
app.add_typer(config, name="config")


@config.command(
    "get", epilog=example("mainspring config get", "mainspring config get lease_seconds")
)
def get(
    key: Annotated[str | None, typer.Argument(help="A setting; all by default.")] = None,
    output_format: OutputFormat = Format.TABLE,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Show the settings in effect and where each was set. Secrets are hidden."""
    out = Out.chosen(output_format, as_json=as_json)
    entries = services.entries(database_url=database_url, data_dir=data_dir)
    if key is None:
        facts = [_facts(entry) for entry in entries]
        out.show(facts, lambda _: output.console.print(SETTINGS(entries)))
        return
    chosen = next((entry for entry in entries if entry.key == key), None)
    if chosen is None:
        raise SettingsError(no_such_setting(key))
    out.say(_facts(chosen), _text(chosen.value))


@config.command(
    "set",
    epilog=example(
        "mainspring config set lease_seconds 30", "mainspring config set lease_seconds --unset"
    ),
)
def set_value(
    key: Annotated[str, typer.Argument(help="A setting.")],
    value: Annotated[str | None, typer.Argument(help="The value; - reads standard input.")] = None,
    is_unset: Annotated[
        bool, typer.Option("--unset", help="Remove the setting from the file.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option(help="The file to change; the settings file in use by default.")
    ] = None,
    config_file: ConfigFile = None,
) -> None:
    """Write a setting to the settings file, or remove it."""
    path = file or settings_file.find()[0]
    if is_unset == (value is not None):
        raise InputError("give a value, or --unset to remove the setting")
    if value is None:
        _unset(path, key)
    else:
        _set(path, key, sys.stdin.read().rstrip("\r\n") if value == "-" else value)


@config.command(
    "check", epilog=example("mainspring config check", "mainspring config check --connect")
)
def check(
    connects: Annotated[
        bool,
        typer.Option("--connect", help="Also connect to the database; starts the embedded one."),
    ] = False,
    output_format: OutputFormat = Format.TABLE,
    as_json: AsJson = False,
    database_url: DatabaseUrl = None,
    data_dir: DataDir = None,
    config_file: ConfigFile = None,
) -> None:
    """Check the settings; exit 2 if one is wrong."""
    out = Out.chosen(output_format, as_json=as_json)
    flags: dict[str, Any] = {"database_url": database_url, "data_dir": data_dir}
    found = services.check(**flags)
    if connects and not _OF_DATABASES & {each.key for each in _errors(found)}:
        found = [*asyncio.run(services.check_connections(**flags)), *found]
    errors = len(_errors(found))
    facts = {
        "errors": errors,
        "warnings": len(found) - errors,
        "findings": list(map(asdict, found)),
    }
    out.show(facts, lambda _: _print_findings(found))
    if errors:
        raise typer.Exit(2)


def _set(path: Path, key: str, text: str) -> None:
    made = getattr(check_value(key, text), key)
    # 30 seconds are written as 30, though they are kept as 30.0.
    value = text if not isinstance(made, int | float) else _number(made)
    settings_file.change(path, key, value)
    shown = services.shown(key, made)
    output.say(f"{key} = {_literal(shown)} in {path}")
    if key in read_environment():
        _warn(f"{variable(key)} is set in the environment and has precedence here")
    if key in SECRETS:
        file = SettingsFile(path, {key: value}, path.stat().st_mode)
        for doubt in services.file_doubts(file):
            _warn(doubt.message)


def _unset(path: Path, key: str) -> None:
    if settings_file.change(path, key, None):
        output.say(f"{key} is no longer in {path}")
        return
    if key not in NAMES:
        raise SettingsError(no_such_setting(key))
    output.say(f"{key} was not in {path}")


def _number(made: float) -> float:
    return int(made) if isinstance(made, float) and made.is_integer() else made


def _literal(value: str | float | None) -> str:
    return f'"{value}"' if isinstance(value, str) else _text(value)


def _text(value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def _facts(entry: Entry) -> dict[str, Any]:
    facts = asdict(entry)
    facts["from"] = facts.pop("origin")
    return facts


def _errors(found: Sequence[Finding]) -> list[Finding]:
    return [finding for finding in found if finding.level is Level.ERROR]


def _print_findings(found: Sequence[Finding]) -> None:
    for finding in found:
        line = Text.assemble((f"{finding.level}: ", _STYLES[finding.level]), finding.message)
        output.console.print(line)
    errors = len(_errors(found))
    output.say(_verdict(errors, len(found) - errors))


def _verdict(errors: int, warnings: int) -> str:
    doubtful = f"; {_count(warnings, 'warning')}" if warnings else ""
    return f"{_count(errors, 'error') if errors else 'nothing is wrong'}{doubtful}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _warn(text: str) -> None:
    output.errors.print(Text.assemble(("warning: ", "yellow"), text))


def _cells(entry: Entry) -> list[Cell]:
    return [entry.key, _text(entry.value), entry.origin, entry.range, entry.meaning]


SETTINGS = Listing(
    Columns(
        names=("KEY", "VALUE", "FROM", "RANGE", "MEANING"),
        dropped=("RANGE",),
        text=("MEANING",),
    ),
    _cells,
)
