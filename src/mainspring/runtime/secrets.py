"""The secrets of a job that runs: real for its handler, hidden from everyone else."""

from collections.abc import Iterator
from contextlib import contextmanager

import orjson

from mainspring import telemetry
from mainspring.domain.definitions import Handler
from mainspring.domain.errors.secrets import UnreadableSecret
from mainspring.domain.jobs.outcomes import AttemptFailed
from mainspring.domain.secrets.paths import secrets_in
from mainspring.domain.secrets.redaction import Redactor
from mainspring.runtime.worker.claimed_job import ClaimedJob
from mainspring.services.secrets import KeyRing, Owner


@contextmanager
def decrypted(job: ClaimedJob, handler: Handler, keys: KeyRing) -> Iterator[None]:
    """The job has its real payload, and a redactor that knows what must not be seen of it.

    Raises UnreadableSecret where no key will ever fit, AttemptFailed where another worker's may.
    """
    try:
        real = keys.decrypt(job.payload(), Owner(job.tenant_id, job.definition))
    except UnreadableSecret as error:
        if error.key_id is None:
            raise
        raise AttemptFailed(str(error)) from None
    if real.is_changed:
        job.payload_text = orjson.dumps(real.payload).decode()
    job.redactor = Redactor(real.secrets | secrets_in(real.payload, handler.secret_paths))
    with telemetry.hiding(job.redactor):
        yield
