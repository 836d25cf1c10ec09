"""The resources of a client, written by `tools/write_nouns.py` from their modules."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.client._sync.approvals import Approvals
    from mainspring.client._sync.definitions import Definitions
    from mainspring.client._sync.doctor import Doctor
    from mainspring.client._sync.errors import Errors
    from mainspring.client._sync.events import Events
    from mainspring.client._sync.figures import Figures
    from mainspring.client._sync.flows import Flows
    from mainspring.client._sync.jobs import Jobs
    from mainspring.client._sync.limits import Limits
    from mainspring.client._sync.people import People
    from mainspring.client._sync.processes import Processes
    from mainspring.client._sync.retention import Retention
    from mainspring.client._sync.schedules import Schedules
    from mainspring.client._sync.sessions import Sessions
    from mainspring.client._sync.tenants import Tenants
    from mainspring.client._sync.tokens import Tokens
    from mainspring.client._sync.triggers import Triggers


class Resources:
    """What a client has an attribute for; it imports each on first use."""

    approvals: "Approvals"
    definitions: "Definitions"
    doctor: "Doctor"
    errors: "Errors"
    events: "Events"
    figures: "Figures"
    flows: "Flows"
    jobs: "Jobs"
    limits: "Limits"
    people: "People"
    processes: "Processes"
    retention: "Retention"
    schedules: "Schedules"
    sessions: "Sessions"
    tenants: "Tenants"
    tokens: "Tokens"
    triggers: "Triggers"
