"""Filters of job lists."""

from dataclasses import fields

import pytest

from mainspring.domain.jobs.filters import JobFilter
from mainspring.domain.types import JobState

INDEXED = ("created_by", "schedule", "event_id", "flow_id", "parent_id", "worker_id")
OTHERS = [each.name for each in fields(JobFilter) if each.name not in INDEXED]


def test_a_list_along_an_index_is_no_search():
    assert not JobFilter().is_search
    assert not JobFilter(created_by=("ann",), flow_id=(7,)).is_search


@pytest.mark.parametrize("name", OTHERS)
def test_a_list_by_anything_else_is_a_search(name: str):
    assert JobFilter(**{name: (JobState.QUEUED,)}, created_by=("ann",)).is_search  # type: ignore[arg-type]
