"""Secrets at the Python door: what is encrypted gets a new key.

await app.secrets.arotate()
"""

from mainspring.doors import Door, blocking
from mainspring.services import rotations
from mainspring.services.rotations import Rotation


class Secrets(Door):
    """The encrypted secrets of an app's jobs and schedules: `app.secrets`."""

    async def arotate(self, *, batch: int = 500) -> Rotation:
        """Encrypt everything under the first of `encryption_keys`; then the others can go."""
        return await rotations.rotate(self._app.database, batch=batch)

    rotate = blocking(arotate)
