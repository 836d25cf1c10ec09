"""The namespaces of an app, written by `tools/write_nouns.py` from their modules."""

from mainspring.app.approvals import Approvals
from mainspring.app.definitions import Definitions
from mainspring.app.events import Events
from mainspring.app.flows import Flows
from mainspring.app.jobs import Jobs
from mainspring.app.limits import Limits
from mainspring.app.namespaces import App
from mainspring.app.people import People
from mainspring.app.schedules import Schedules
from mainspring.app.secrets import Secrets
from mainspring.app.tenants import Tenants
from mainspring.app.tokens import Tokens
from mainspring.app.triggers import Triggers


class Namespaces(App):
    """The part of `Mainspring` that has an attribute for each noun."""

    def _make_namespaces(self) -> None:
        self.approvals = Approvals(self)
        self.definitions = Definitions(self)
        self.events = Events(self)
        self.flows = Flows(self)
        self.jobs = Jobs(self)
        self.limits = Limits(self)
        self.people = People(self)
        self.schedules = Schedules(self)
        self.secrets = Secrets(self)
        self.tenants = Tenants(self)
        self.tokens = Tokens(self)
        self.triggers = Triggers(self)
