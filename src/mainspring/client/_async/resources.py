"""The resources of a client, written by `tools/write_nouns.py` from their modules."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mainspring.client._async.approvals import Approvals
    from mainspring.client._async.definitions import Definitions
    from mainspring.client._async.doctor import Doctor
    from mainspring.client._async.errors import Errors
    from mainspring.client._async.events import Events
    from mainspring.client._async.figures import Figures
    from mainspring.client._async.flows import Flows
    from mainspring.client._async.jobs import Jobs
    from mainspring.client._async.limits import Limits
    from mainspring.client._async.people import People
    from mainspring.client._async.processes import Processes
    from mainspring.client._async.retention import Retention
    from mainspring.client._async.schedules import Schedules
    from mainspring.client._async.sessions import Sessions
    from mainspring.client._async.tenants import Tenants
    from mainspring.client._async.tokens import Tokens
    from mainspring.client._async.triggers import Triggers


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
