"""Every input: its limit is accepted; one more and a hundred times as much are refused at once."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mainspring.db.template_databases import fresh_database
from tests.budgets.bench import Bench, bench
from tests.budgets.cases import CASES, Case

# For a machine with much else to do; most take a few milliseconds.
SOON = 30.0
TOO_LARGE = ("413", "MS002", "payload_too_large")


@pytest.fixture(scope="module")
def running(server_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder: Path = tmp_path_factory.mktemp("budgets")
    with fresh_database(server_url) as url, bench(url, folder) as made:
        yield made


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_limit_is_accepted_and_more_is_refused(running: Bench, case: Case):
    assert case.send(running, case.limit) is None

    ensure_refused(running, case, case.limit + 1)
    ensure_refused(running, case, case.far)


def ensure_refused(running: Bench, case: Case, count: int) -> None:
    began = time.monotonic()
    refused = case.send(running, count)
    took = time.monotonic() - began

    assert refused is not None
    # What is far over a limit may be too large for something else before.
    assert refused.code in (case.code, *TOO_LARGE), refused
    assert case.text in refused.text or refused.code in TOO_LARGE
    assert refused.written == {}
    assert took < SOON
