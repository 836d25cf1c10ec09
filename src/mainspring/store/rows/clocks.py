"""Readings of clocks as parameters."""

from mainspring.domain.processes import ClockReading


def clock_params(clock: ClockReading | None) -> dict[str, float | None]:
    """Those of a statement that stores a sign of life; null before the first reading."""
    if clock is None:
        return {"clock_offset_ms": None, "round_trip_ms": None}
    return {"clock_offset_ms": clock.offset_ms, "round_trip_ms": clock.round_trip_ms}
