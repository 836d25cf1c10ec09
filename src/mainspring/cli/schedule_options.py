"""The fields of a schedule as options of `mainspring schedules create` and `update`."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, TypeVar
from zoneinfo import ZoneInfo

import orjson
import typer

from mainspring.cli.cron import parse_instant
from mainspring.cli.durations import read_duration
from mainspring.cli.jobs import parse_payload
from mainspring.domain.errors import InvalidOption
from mainspring.domain.schedules.conditions import GaugeBounds
from mainspring.domain.schedules.cron import DstFold, DstGap, find_zone
from mainspring.domain.schedules.slots import CatchUp, Overlap
from mainspring.domain.types import Delivery

Command = TypeVar("Command", bound=Callable[..., None])
Reader = Callable[[str, str, ZoneInfo], Any]

_WHEN, _WHAT, _LATE, _CONDITION = "When", "What", "When it is late or still runs", "Condition"


def read_instant(option: str, text: str, zone: ZoneInfo) -> datetime:
    """What has no offset is a time in the zone."""
    try:
        return parse_instant(text, zone)
    except InvalidOption as error:
        raise InvalidOption(option, error.problem) from None


def _read_payload(_: str, text: str, __: ZoneInfo) -> Any:
    return parse_payload(text)


def _read_object(option: str, text: str, _: ZoneInfo) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidOption(option, f"is not JSON ({error})") from None


@dataclass(frozen=True, slots=True)
class Field:
    """An option that stands for a field of ScheduleSpec; `read` makes its value from text."""

    name: str
    help: str
    panel: str
    kind: Any = str
    read: Reader | None = None

    @property
    def key(self) -> str:
        """What the API calls it."""
        return f"is_{self.name}" if self.kind is bool else self.name

    @property
    def option(self) -> str:
        return f"--{self.name.replace('_', '-')}"

    @property
    def parameter(self) -> inspect.Parameter:
        flag = f"{self.option}/--disabled" if self.kind is bool else self.option
        option = typer.Option(flag, help=self.help, rich_help_panel=self.panel)
        return inspect.Parameter(
            self.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[self.kind | None, option],
        )


FIELDS = (
    Field("cron", "Five fields, @daily or '@every 90s'.", _WHEN),
    Field("every", "An interval: 90, 90s, 5m, 1h30m, 2d.", _WHEN, read=read_duration),
    Field("at", "Once, at this instant.", _WHEN, read=read_instant),
    Field("zone", "The time zone of all that has no offset, such as Europe/Berlin.", _WHEN),
    Field("dst_gap", "A fixed time that the clock skips.", _WHEN, DstGap),
    Field("dst_fold", "A fixed time that the clock shows twice.", _WHEN, DstFold),
    Field("calendar", "Free days, as a JSON object.", _WHEN, read=_read_object),
    Field("starts_at", "No slot before this instant.", _WHEN, read=read_instant),
    Field("ends_at", "No slot after this instant.", _WHEN, read=read_instant),
    Field("jitter", "Spread each slot over this time.", _WHEN, read=read_duration),
    Field("enabled", "Whether it fires.", _WHEN, bool),
    Field("paused_until", "Fires nothing before this instant.", _WHEN, read=read_instant),
    Field("payload", "A JSON object; may hold {{slot_at|date}}.", _WHAT, read=_read_payload),
    Field("description", "What it is for.", _WHAT),
    Field("queue", "Another queue than the definition's.", _WHAT),
    Field("priority", "0 (first) to 1000 (last).", _WHAT, int),
    Field("max_attempts", "Attempts of each job.", _WHAT, int),
    Field("delivery", "Whether a job whose worker died is run again.", _WHAT, Delivery),
    Field("misfire_grace", "How late still is on time.", _LATE, read=read_duration),
    Field("catch_up", "Slots that were missed: none, the latest or all of them.", _LATE, CatchUp),
    Field("catch_up_limit", "The most missed slots that are made up for.", _LATE, int),
    Field("catch_up_max_age", "The oldest slot that is made up for.", _LATE, read=read_duration),
    Field("overlap", "A slot that is due while an earlier run is live.", _LATE, Overlap),
    Field("max_running", "Runs that may be live at a time.", _LATE, int),
    Field("run_timeout", "A run that takes longer is closed.", _LATE, read=read_duration),
    Field("launcher", "The name of a launcher that decides.", _CONDITION),
    Field("condition_sql", "A query; fires if its first value is true or not 0.", _CONDITION),
    Field("gauge_sql", "A query for a number; fires from the upper bound on.", _CONDITION),
    Field("gauge_lower", "The number at which it stops firing.", _CONDITION, float),
    Field("gauge_upper", "The number from which on it fires.", _CONDITION, float),
    Field("gauge_bounds", "Whether a value at a bound has reached it.", _CONDITION, GaugeBounds),
    Field("condition_role", "The database role that queries run under.", _CONDITION),
    Field("condition_timeout", "How long a condition may take.", _CONDITION, read=read_duration),
    Field("max_retries", "Failed checks in a row that disable it.", _CONDITION, int),
)


def with_fields(command: Command) -> Command:
    """Give a command that takes **fields an option for each of them."""
    signature = inspect.signature(command)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    parameters = [*own, *(field.parameter for field in FIELDS)]
    hints = {parameter.name: parameter.annotation for parameter in parameters}
    vars(command)["__signature__"] = signature.replace(parameters=parameters)
    command.__annotations__ = {**hints, "return": None}
    return command


def read_fields(given: Mapping[str, Any], zone: str) -> dict[str, Any]:
    """The fields that were given; instants without an offset are in the given or this zone."""
    chosen = find_zone(given.get("zone") or zone)
    return {
        field.key: field.read(field.option, value, chosen) if field.read else value
        for field in FIELDS
        if (value := given.get(field.name)) is not None
    }
