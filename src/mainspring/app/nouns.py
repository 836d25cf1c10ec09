"""The namespaces of an app, written by `tools/write_nouns.py` from their modules."""

from typing import TYPE_CHECKING

from mainspring.app.namespaces import App

if TYPE_CHECKING:
    from mainspring.app.approvals import Approvals
    from mainspring.app.definitions import Definitions
    from mainspring.app.doctor import Doctor
    from mainspring.app.errors import Errors
    from mainspring.app.events import Events
    from mainspring.app.figures import Figures
    from mainspring.app.flows import Flows
    from mainspring.app.jobs import Jobs
    from mainspring.app.limits import Limits
    from mainspring.app.people import People
    from mainspring.app.processes import Processes
    from mainspring.app.queues import Queues
    from mainspring.app.retention import Retention
    from mainspring.app.schedules import Schedules
    from mainspring.app.secrets import Secrets
    from mainspring.app.tenants import Tenants
    from mainspring.app.tokens import Tokens
    from mainspring.app.triggers import Triggers


class Namespaces(App):
    """The part of `Mainspring` that has an attribute for each noun, imported on first use."""

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
    queues: "Queues"
    retention: "Retention"
    schedules: "Schedules"
    secrets: "Secrets"
    tenants: "Tenants"
    tokens: "Tokens"
    triggers: "Triggers"
