"""Sets of instants as sorted, disjoint spans of seconds."""

from collections.abc import Iterable, Sequence

Span = tuple[float, float]
Spans = Sequence[Span]


def union(spans: Iterable[Span]) -> list[Span]:
    joined: list[Span] = []
    for start, end in sorted(span for span in spans if span[0] < span[1]):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined


def common(one: Spans, other: Spans) -> list[Span]:
    found = []
    i = j = 0
    while i < len(one) and j < len(other):
        start, end = max(one[i][0], other[j][0]), min(one[i][1], other[j][1])
        if start < end:
            found.append((start, end))
        if one[i][1] < other[j][1]:
            i += 1
        else:
            j += 1
    return found


def without(spans: Spans, taken: Spans) -> list[Span]:
    return common(spans, gaps(taken))


def gaps(spans: Spans) -> list[Span]:
    """All other instants, from minus infinity to infinity."""
    starts = [float("-inf"), *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), float("inf")]
    return [(start, end) for start, end in zip(starts, ends, strict=True) if start < end]


def length(spans: Spans) -> float:
    return sum(end - start for start, end in spans)


def within(spans: Spans, start: float, end: float) -> list[Span]:
    return common(spans, [(start, end)]) if start < end else []


def busy(spans: Iterable[Span], least: int) -> list[Span]:
    """Where at least so many of them overlap."""
    changes = sorted(
        change for start, end in spans if start < end for change in ((start, 1), (end, -1))
    )
    found, count, began = [], 0, 0.0
    for at, change in changes:
        if count < least <= count + change:
            began = at
        if count + change < least <= count:
            found.append((began, at))
        count += change
    return union(found)
