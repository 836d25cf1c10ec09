"""Instants and durations as people read them."""

from datetime import UTC, datetime, timedelta


def instant(at: datetime | None) -> str:
    """An instant and how long ago it was, or how far away it is."""
    return "" if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S %Z} ({relative(at)})"


def relative(at: datetime) -> str:
    return ago(at) if at <= datetime.now(UTC) else f"in {span(at - datetime.now(UTC))}"


def ago(at: datetime) -> str:
    elapsed = datetime.now(UTC) - at
    if elapsed < timedelta(seconds=1):
        return "now"
    return f"{span(elapsed)} ago"


def took(started_at: datetime | None, finished_at: datetime | None) -> timedelta | None:
    """How long it ran, until now if it still does; None if it has not started."""
    return None if started_at is None else (finished_at or datetime.now(UTC)) - started_at


def span(elapsed: timedelta) -> str:
    seconds = max(elapsed.total_seconds(), 0.0)
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 100:
        return f"{seconds:.3g} s"
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size or unit == "min":
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
