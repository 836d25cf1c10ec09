"""What a worker registers of a remote definition, and what becomes of it.

With a revision, it is written only over a lower one, so that neither an older worker that starts
again nor a worker that a person has corrected brings back what was. Without, the last one wins,
except over a definition that has a revision.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from mainspring.domain.access.roles import WRITE, Caller, Role, allows
from mainspring.domain.definitions import Definition

REVISION: Final = "revision"


class Change(StrEnum):
    """What came of a registration."""

    CREATED = "created"
    UPDATED = "updated"
    UNCHANGED = "unchanged"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Registration:
    """A remote definition as a worker declares it; fields that are not given are left alone."""

    key: str
    fields: Mapping[str, Any]

    @property
    def revision(self) -> int | None:
        return self.fields.get(REVISION)


def may_register(caller: Caller) -> bool:
    """Definitions are shared, so a worker of some tenants changes none."""
    is_shared = caller.role is Role.OPERATOR or (
        caller.role is Role.WORKER and caller.served is None
    )
    return is_shared and allows(caller.scopes, "definitions", WRITE)


def differing(known: Definition, asked: Definition, fields: Mapping[str, Any]) -> list[str]:
    """The given fields in which the stored definition is another."""
    own = (name for name in fields if name != REVISION)
    return sorted(name for name in own if getattr(known, name) != getattr(asked, name))


def decide(known: Definition, asked: Definition, given: Registration, *, may_write: bool) -> Change:
    """What becomes of a definition that is stored."""
    stored = known.spec.get(REVISION)
    is_same = not differing(known, asked, given.fields)
    if given.revision is None:
        is_newer = stored is None
    else:
        is_newer = stored is None or given.revision > stored
    if is_same and (given.revision in (None, stored) or not may_write or not is_newer):
        return Change.UNCHANGED
    return Change.UPDATED if is_newer and may_write else Change.KEPT
