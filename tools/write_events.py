"""Writes docs/reference/events.md from the table of log events.

python tools/write_events.py
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from mainspring.telemetry.catalogue import EVENTS, GROUPS
from mainspring.telemetry.events import DEBUG, ERROR, FIELDS, INFO, JOB, WARNING, Event

PAGE: Final = Path(__file__).parents[1] / "docs" / "reference" / "events.md"
_LEVELS: Final = {DEBUG: "debug", INFO: "info", WARNING: "warning", ERROR: "error"}
_HEAD: Final = """\
# Log events

*Written by `make events` from `src/mainspring/telemetry/catalogue/`.*

A log line is one event. It goes through Python's `logging`, by the logger `mainspring`, with each
field as an attribute of the record (`record.job_id`). A field whose name `logging` uses itself has
an underscore at its end (`record.name_`). See [workers](../guides/workers.md#logs) for setting it
up.

A line has those fields of its event that are known. With `log_format = json` a line begins with
`at`, `level`, `event`, `role` (`worker`, `scheduler`, `server`, `up` or `supervisor`), `process`
(host and process id) and `version`, followed by the fields in the order of [the table
below](#fields). Lines of `ctx.log` have the fields of *job* and your own.

Of warnings and errors with the same cause (event, definition or schedule, kind of error and place
in the code), five a second are logged; the others are counted in one more line, with `repeated` and
`note`.

*job* stands for {job}. `schedule` and `slot`
are there if a schedule made the job.
"""


def page() -> str:
    return "\n".join([_HEAD.format(job=_code(JOB.split())), *_groups(), *_fields()]) + "\n"


def _groups() -> Iterator[str]:
    for title, events in GROUPS.items():
        yield f"## {title}"
        yield "| event | level | meaning | fields |\n|---|---|---|---|"
        yield from _rows(events)
        yield ""


def _rows(events: Mapping[str, Event]) -> Iterator[str]:
    for name, event in sorted(events.items()):
        yield f"| `{name}` | {_LEVELS[event.level]} | {event.sentence} | {_named(event)} |"


def _named(event: Event) -> str:
    whole = JOB.split()
    if event.fields[: len(whole)] == tuple(whole):
        own = _code(event.fields[len(whole) :])
        return f"*job*, {own}" if own else "*job*"
    return _code(event.fields)


def _fields() -> Iterator[str]:
    used = {field for event in EVENTS.values() for field in event.fields}
    yield "## Fields"
    yield "| field | meaning |\n|---|---|"
    for name, meaning in FIELDS.items():
        if name in used or name in ("repeated", "note", "details"):
            yield f"| `{name}` | {meaning} |"


def _code(names: tuple[str, ...] | list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


if __name__ == "__main__":
    PAGE.write_text(page())
