"""Fields of figures, for the description of the API."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_AT = "2026-01-31T12:00:00Z"
_DURATIONS = {"count": 12, "mean": 1.5, "p50": 1.2, "p95": 4.1, "p99": 5.8, "worst": 6.2}
_FIGURES = {
    "at": _AT,
    "enqueued": 12,
    "started": 13,
    "ended": {"succeeded": 11, "failed": 0, "dead_letter": 1, "canceled": 0},
    "deleted": 0,
    "revived": 0,
    "attempts": {
        "succeeded": 11,
        "failed": 2,
        "timeout": 0,
        "canceled": 0,
        "snoozed": 0,
        "lost": 0,
    },
    "ready": 3,
    "running": 4,
    "oldest_ready_seconds": 0.8,
    "waited": _DURATIONS,
    "ran": _DURATIONS,
}

FIGURE_FIELDS: Mapping[str, tuple[str, Any]] = MappingProxyType(
    {
        "Durations.count": ("How many were counted.", 12),
        "Durations.mean": ("The average in seconds.", 1.5),
        "Durations.p50": ("Half took no longer.", 1.2),
        "Durations.p95": ("Of a hundred 95 took no longer.", 4.1),
        "Durations.p99": ("Of a hundred 99 took no longer.", 5.8),
        "Durations.worst": ("The longest.", 6.2),
        "FigureReport.end": ("Until when, rounded to whole points.", _AT),
        "FigureReport.more": ("How many series are left out.", 0),
        "FigureReport.seen_at": ("As of when; null before the first count.", _AT),
        "FigureReport.series": (
            "The busiest first.",
            [
                {
                    "tenant": None,
                    "queue": None,
                    "definition": "send_welcome",
                    "total": _FIGURES,
                    "points": [_FIGURES],
                }
            ],
        ),
        "FigureReport.start": ("From when, rounded to whole points.", _AT),
        "FigureReport.step": ("The length of a point.", "1h"),
        "Point.at": ("When the span begins.", _AT),
        "Point.attempts": ("Attempts that ended, by status.", _FIGURES["attempts"]),
        "Point.deleted": ("Jobs that were deleted before they ended.", 0),
        "Point.ended": ("Jobs that ended, by state.", _FIGURES["ended"]),
        "Point.enqueued": ("Jobs that were enqueued.", 12),
        "Point.oldest_ready_seconds": ("The longest a ready job was found waiting.", 0.8),
        "Point.ran": ("From started to done, of attempts that succeeded.", _DURATIONS),
        "Point.ready": ("The most jobs found ready at once.", 3),
        "Point.revived": ("Jobs that had ended and were retried.", 0),
        "Point.running": ("The most jobs found running at once.", 4),
        "Point.started": ("Attempts that were started.", 13),
        "Point.waited": ("From ready to started, of each attempt.", _DURATIONS),
        "Series.definition": ("The definition, if asked for.", "send_welcome"),
        "Series.points": ("In order; a span in which nothing was is missing.", [_FIGURES]),
        "Series.queue": ("The queue, if asked for.", None),
        "Series.tenant": ("The tenant, if asked for.", None),
        "Series.total": ("The whole time.", _FIGURES),
    }
)
