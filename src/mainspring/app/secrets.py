"""Secrets: rotate the key they are encrypted with.

await app.secrets.arotate()
"""

from mainspring.app.namespaces import Namespace, blocking
from mainspring.services import key_rotation
from mainspring.services.key_rotation import Rotation


class Secrets(Namespace):
    """The encrypted secrets of an app's jobs and schedules: `app.secrets`."""

    async def arotate(self, *, batch: int = 500) -> Rotation:
        """Encrypt everything with the first of `encryption_keys`; the others can then be
        removed."""
        return await key_rotation.rotate(self._app.database, batch=batch)

    rotate = blocking(arotate)
