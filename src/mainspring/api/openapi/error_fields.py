"""Fields of errors, grouped, for the description of the API."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

_AT = "2026-01-31T12:00:00Z"
_OF_GROUP: Mapping[str, tuple[str, Any]] = MappingProxyType(
    {
        "count": ("Failed attempts on the days that were asked for.", 1200),
        "definitions": ("Definitions whose jobs failed with it.", ["send_welcome"]),
        "is_new": ("Whether it was not seen in the 30 days before.", True),
        "job_ids": ("The newest jobs, up to five.", ["8", "7"]),
        "key": ("As jobs and attempts have it in error_key.", "5d41402abc4b"),
    }
)

ERROR_FIELDS: Mapping[str, tuple[str, Any]] = MappingProxyType(
    {
        "ErrorDay.count": ("Failed attempts on that day.", 1200),
        "day": ("The day, in UTC.", "2026-01-31"),
        "days": ("The days on which it was seen, the newest first.", ...),
        "error_key": ("Group of the last error; null if no attempt failed.", None),
        "first_at": ("When it was seen first, in the last 90 days.", _AT),
        "last_at": ("When it was seen last.", _AT),
        "sample": ("The error of the newest, in one line.", "ValueError: there is no user 7"),
        **{
            f"{schema}.{name}": field
            for schema in ("ErrorGroup", "ErrorGroupDetails")
            for name, field in _OF_GROUP.items()
        },
    }
)
