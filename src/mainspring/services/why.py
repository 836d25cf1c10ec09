"""Why a job does not run; the rule stands in SQL, in `sql/internal/why.sql`."""

from mainspring.db.sessions import Session
from mainspring.domain.types import JobId, TenantId
from mainspring.domain.why import Why
from mainspring.store import why as store


async def why(session: Session, job_id: JobId, tenant_id: TenantId) -> Why:
    """Raises JobNotFound for a job of someone else; of an id that nobody has an operator is told
    what became of it."""
    return await store.why(session, job_id, tenant_id)
