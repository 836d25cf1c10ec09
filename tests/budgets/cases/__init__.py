"""What is sent for each row of docs/reference/budgets.md: as much as the limit, and more.

A hundred times a megabyte takes PostgreSQL and the client seconds to pass on, before anything of
ours sees it. So of large inputs `most` is sent, and the neighbours' test sends the rest over HTTP.
"""

from tests.budgets.cases import (
    approvals,
    definitions,
    events,
    flows,
    jobs,
    requests,
    schedules,
    tenants,
    work,
)
from tests.budgets.cases.elsewhere import ELSEWHERE
from tests.budgets.cases.shared import FACTOR, MIB, Case

_NOUNS = (approvals, definitions, events, flows, jobs, requests, schedules, tenants, work)
CASES: list[Case] = [case for noun in _NOUNS for case in noun.CASES]

__all__ = ["CASES", "ELSEWHERE", "FACTOR", "MIB", "Case"]
