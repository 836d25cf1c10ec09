"""Which jobs are the system's own, and who may steer them."""

from mainspring.client import Client
from mainspring.domain.access.roles import Role
from mainspring.domain.errors.access import Forbidden
from mainspring.domain.types import BUILT_IN


def ensure_not_system(client: Client, job_id: int, verb: str) -> None:
    """Refuse a job of a built-in definition, with the way for admins."""
    job = client.jobs.get(job_id)
    if job.definition.startswith(BUILT_IN):
        raise Forbidden(
            f"job {job_id} belongs to the system ({job.definition}); an admin can {verb} it with "
            f"`mainspring admin jobs {verb} {job_id}`"
        )


def ensure_admin(client: Client) -> Role:
    """The role of whoever asks; anyone but an admin or an operator is refused."""
    role = client.me().role
    if role not in (Role.ADMIN, Role.OPERATOR):
        raise Forbidden(
            f"your role is {role}; this takes an admin. Your own jobs are under `mainspring jobs`"
        )
    return role
