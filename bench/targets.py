"""What Mainspring must reach, each as a ratio of figures taken in the same run."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from bench.catalogue import OURS, RAW, SYSTEMS
from bench.measurements import Figures

Measure = Callable[[Figures], float]


@dataclass(frozen=True, slots=True)
class Target:
    """`measure` raises KeyError when something it needs was not measured."""

    case: str
    against: str
    measure: Measure
    must: float | None = None
    aim: float | None = None
    is_ceiling: bool = False

    def holds(self, value: float | None, bound: float | None) -> bool | None:
        """None when there is nothing to compare."""
        if value is None or bound is None:
            return None
        return value <= bound if self.is_ceiling else value >= bound


@dataclass(frozen=True, slots=True)
class Verdict:
    target: Target
    value: float | None
    """None when it was not measured."""

    @property
    def is_met(self) -> bool | None:
        return self.target.holds(self.value, self.target.must)

    @property
    def is_aim_met(self) -> bool | None:
        return self.target.holds(self.value, self.target.aim)


def verdicts(figures: Figures) -> list[Verdict]:
    return [Verdict(target, _value(target, figures)) for target in TARGETS]


def fastest_rival(figures: Figures, case: str, *, is_lower_better: bool = False) -> str:
    """The rival with the best figure; raises KeyError when none was measured."""
    rivals = [name for name, system in SYSTEMS.items() if system.is_rival]
    measured = {name: figures[case, name] for name in rivals if (case, name) in figures}
    if not measured:
        raise KeyError(case)
    best = min if is_lower_better else max
    return best(measured, key=measured.__getitem__)


def _value(target: Target, figures: Figures) -> float | None:
    try:
        return target.measure(figures)
    except KeyError:
        return None


def _to_fastest_rival(case: str) -> Measure:
    return lambda figures: figures[case, OURS] / figures[case, fastest_rival(figures, case)]


def _to_quickest_rival(case: str) -> Measure:
    def measure(figures: Figures) -> float:
        rival = fastest_rival(figures, case, is_lower_better=True)
        return figures[case, OURS] / figures[case, rival]

    return measure


def _to_raw(case: str) -> Measure:
    return lambda figures: figures[case, OURS] / figures[case, RAW]


def _to_own(case: str, other: str) -> Measure:
    return lambda figures: figures[case, OURS] / figures[other, OURS]


def _to_free(case: str) -> Measure:
    """To what was taken in turns with it, round by round."""
    return _own(f"{case}_ratio")


def _beyond_a_commit(figures: Figures) -> float:
    """Milliseconds of the median pick-up that a bare insert's own commit does not explain."""
    return figures["latency_p50", OURS] - 1000 / figures["single_enqueue", RAW]


def _own(case: str) -> Measure:
    return lambda figures: figures[case, OURS]


_RIVAL: Final = "of the fastest rival"
_LIMIT: Final = "of the raw limit"
_FREE: Final = "of the same without"

TARGETS: Final = (
    Target("drain_1", _RIVAL, _to_fastest_rival("drain_1"), 1.8),
    Target("drain_1", _LIMIT, _to_raw("drain_1"), 0.5, 0.7),
    Target("drain_2", _RIVAL, _to_fastest_rival("drain_2"), 1.3),
    Target("drain_2", _LIMIT, _to_raw("drain_2"), aim=0.6),
    Target("single_enqueue", "of a bare insert", _to_raw("single_enqueue"), 0.7, 0.9),
    Target("bulk_enqueue", _RIVAL, _to_fastest_rival("bulk_enqueue"), 1.5),
    Target("bulk_enqueue", "of COPY", _to_raw("bulk_enqueue"), aim=0.7),
    Target(
        "latency_p50", "of the best rival", _to_quickest_rival("latency_p50"), 1.0, is_ceiling=True
    ),
    Target(
        "latency_p99", "of the best rival", _to_quickest_rival("latency_p99"), 1.0, is_ceiling=True
    ),
    Target("latency_p50", "ms beyond a commit", _beyond_a_commit, aim=1.0, is_ceiling=True),
    Target("sustained", _RIVAL, _to_fastest_rival("sustained"), 1.3),
    Target("drain_history", _FREE, _to_free("drain_history"), 0.95),
    Target("drain_100_tenants", _FREE, _to_free("drain_100_tenants"), 0.8),
    Target("fair_share_wait", "jobs", _own("fair_share_wait"), 400, is_ceiling=True),
    Target("fair_share_worst", "jobs", _own("fair_share_worst"), 400, is_ceiling=True),
    Target("drain_backlog", _FREE, _to_free("drain_backlog"), 0.95),
    Target("drain_snapshot", _FREE, _to_free("drain_snapshot"), 0.9, 1.0),
    Target("fire_due", "of bulk enqueue", _own("fire_due_ratio"), 0.5),
    Target("schedule_lateness_p99", "ms", _own("schedule_lateness_p99"), 100, is_ceiling=True),
    Target(
        "tick_million",
        "of tick_thousand",
        _to_own("tick_million", "tick_thousand"),
        2.0,
        is_ceiling=True,
    ),
    Target("drain_beside_limited", _FREE, _to_free("drain_beside_limited"), 0.9),
    Target("drain_keys", _FREE, _to_free("drain_keys"), 0.5),
    Target("drain_failing", _FREE, _to_free("drain_failing"), 0.5),
    # A job costs 1.3 times the spawn at the most.
    Target("command_spawn", "of a bare loop", _to_raw("command_spawn"), 1 / 1.3),
    Target("memory", "MiB", _own("memory"), 150, is_ceiling=True),
    Target("api_post", "of a bare route", _to_raw("api_post"), 0.5),
    Target(
        "api_list_million",
        "of api_list_thousand",
        _to_own("api_list_million", "api_list_thousand"),
        3.0,
        is_ceiling=True,
    ),
    Target(
        "api_summary_million",
        "of api_summary_thousand",
        _to_own("api_summary_million", "api_summary_thousand"),
        2.0,
        is_ceiling=True,
    ),
    Target("api_streams_memory", "MiB", _own("api_streams_memory"), 200, is_ceiling=True),
    Target("api_streams_heard", "s", _own("api_streams_heard"), 1.0, is_ceiling=True),
)
