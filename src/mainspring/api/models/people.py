"""People in requests and responses."""

from datetime import datetime
from typing import Literal

from mainspring.api.models.base import Answer, Body, IdOut, Name
from mainspring.domain.access.roles import Role
from mainspring.domain.access.tokens import Person


class PersonModel(Answer):
    """A person who can log in; the audit log knows them as `person:` and the id."""

    id: IdOut
    name: str
    role: Role
    tenant: str | None
    is_enabled: bool
    created_at: datetime
    created_by: str
    last_seen_at: datetime | None

    @classmethod
    def of(cls, person: Person) -> "PersonModel":
        own = {name: getattr(person, name) for name in cls.model_fields if hasattr(person, name)}
        return cls.model_construct(
            **own,
            id=person.person_id,
            tenant=person.tenant_id,
            is_enabled=not person.is_disabled,
        )


PersonRole = Literal["operator", "admin", "member", "viewer"]


class NewPerson(Body):
    """A person to create."""

    name: Name
    role: PersonRole


class PersonChanges(Body):
    """A new role, or whether the person may log in at all."""

    role: PersonRole | None = None
    is_enabled: bool | None = None


class LoginModel(Answer):
    """A login link that works once, within 15 minutes."""

    url: str
