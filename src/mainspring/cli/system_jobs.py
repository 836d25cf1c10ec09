"""Which jobs are the system's own, and who may steer them."""

from mainspring.client import Client
from mainspring.domain.access.roles import Role
from mainspring.domain.definitions import BUILT_IN
from mainspring.domain.errors.access import Forbidden


def ensure_not_system(client: Client, job_id: int, verb: str) -> None:
    """Refuse a job of a built-in definition, with the way for admins."""
    job = client.jobs.get(job_id)
    if job.definition.startswith(BUILT_IN):
        raise Forbidden(
            f"job {job_id} is the system's own ({job.definition}); an admin can {verb} it with "
            f"`mainspring admin jobs {verb} {job_id}`"
        )


def ensure_admin(client: Client) -> Role:
    """The role of whoever asks; anyone but an admin or an operator is refused."""
    role = client.me().role
    if role not in (Role.ADMIN, Role.OPERATOR):
        raise Forbidden(
            f"you are a {role}; ask an admin. What you enqueued yourself is under `mainspring jobs`"
        )
    return role
