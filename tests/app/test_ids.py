"""Ids that are none: refused by name, before the database sees them."""

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from mainspring import Mainspring
from mainspring.domain.errors import InvalidOption


@pytest.fixture
def app(database_url: str) -> Iterator[Mainspring]:
    with closing(Mainspring(database_url)) as app:
        yield app


CALLS: dict[str, Callable[[Mainspring, object], object]] = {
    "job_id": lambda app, given: app.jobs.get(given),  # type: ignore[arg-type]
    "job_id of cancel": lambda app, given: app.jobs.cancel(given),  # type: ignore[arg-type]
    "job_id of retry": lambda app, given: app.jobs.retry(given),  # type: ignore[arg-type]
    "job_id of approve": lambda app, given: app.approvals.approve(given),  # type: ignore[arg-type]
    "event_id": lambda app, given: app.events.get(given),  # type: ignore[arg-type]
    "flow_id": lambda app, given: app.flows.get(given),  # type: ignore[arg-type]
    "before": lambda app, given: app.jobs.list(before=given),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("abc", "must be a whole number, not 'abc'"),
        (True, "must be a whole number, not True"),
        (2**63, "must be at most 9223372036854775807"),
    ],
)
def test_an_id_that_is_none_is_refused_by_name(app, name, given, problem):
    with pytest.raises(InvalidOption) as refused:
        CALLS[name](app, given)

    assert str(refused.value) == f"{name.split(' ')[0]} {problem}"


def test_who_passes_a_handle_is_told_to_pass_its_id(app):
    @app.job
    def work() -> None: ...

    with pytest.raises(InvalidOption, match="; pass its id"):
        app.jobs.get(work.enqueue())
