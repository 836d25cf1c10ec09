"""What an event is, and the fields that it may have; `catalogue/` is the table of all events."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

# As in logging, which takes a while to import.
DEBUG, INFO, WARNING, ERROR = 10, 20, 30, 40


@dataclass(frozen=True, slots=True)
class Event:
    """An event; a line has as many of the fields as are known."""

    level: int
    sentence: str
    fields: tuple[str, ...]


FIELDS: Mapping[str, str] = MappingProxyType(
    {
        # What a line is about, in this order on every line.
        "tenant": "tenant of the job, schedule or event",
        "job_id": "the job",
        "definition": "its definition",
        "queue": "its queue",
        "attempt": "number of the attempt, 1 for the first",
        "worker": "id of the worker, as in `mainspring workers list`",
        "schedule": "name of the schedule, also of the one that made the job",
        "slot": "instant of the slot, also of the one that made the job",
        "event_id": "the event",
        "trigger": "name of the trigger",
        # Many things.
        "count": "how many there were in all",
        "job_ids": "the first ten jobs",
        "event_ids": "the first ten events",
        "definitions": "the first ten definitions",
        "schedules": "names of the first ten schedules",
        "slots": "instants of the first ten slots",
        "launchers": "names of the first ten launchers",
        "tenants": "the first ten tenants",
        "workers": "the first ten workers",
        "queues": "the queues",
        # Quantities and states.
        "seconds": "how long it took, or takes until it is tried again",
        "retry_in_seconds": "when the job is tried again",
        "drain_seconds": "how long running jobs may go on",
        "state": "state of the job",
        "retry": "failures in a row",
        "tries": "how often it was tried",
        "jobs": "jobs that were enqueued",
        "failed": "triggers that failed",
        "created": "new schedules",
        "changed": "changed schedules",
        "kept": "schedules that stay as they are",
        "handed_back": "jobs that were handed back",
        "bytes": "size",
        "entries": "entries of the index",
        "leads": "whether this scheduler looks first",
        # Names.
        "name": "name of the worker",
        "loop": "the background task",
        "duty": "what was to be done",
        "connection": "which connection, as in `application_name`",
        "hangs": "what does not move",
        "limit": "name of the limit",
        "key": "its key",
        "index": "name of the index",
        "data_dir": "data directory of the embedded server",
        "pid": "process id",
        "exit_code": "exit code, negative for a signal",
        "person": "name of the person",
        "address": "address of the client",
        "method": "HTTP method",
        "path": "path of the request",
        "payload": "what was sent",
        "problem": "what is wrong",
        "reason": "why",
        "note": "a remark",
        "repeated": "how many more events there were like this one, of which there is no line",
        "error": "the error, in one line",
        "details": "the traceback, and the other lines of the error",
    }
)
"""The fields of all events, with their meaning, in the order in which lines have them."""

# On any line: those of errors that were only counted, and what follows the first line of an error.
EVERYWHERE = ("repeated", "note", "details")
JOB = "tenant job_id definition queue attempt worker schedule slot"


def event(level: int, fields: str, sentence: str) -> Event:
    return Event(level, sentence, tuple(fields.split()))


_ORDER = {field: place for place, field in enumerate(FIELDS)}


def in_order(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Without those that are not known; what a line is about comes first, errors come last."""
    known = [(name, value) for name, value in facts.items() if value is not None]
    last = len(_ORDER) - 5
    return dict(sorted(known, key=lambda each: _ORDER.get(each[0], last)))
