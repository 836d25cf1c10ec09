"""Limit keys whose jobs cannot be claimed: one of them makes the claim of many fail.

Each time that a claim is refused half as many keys are asked for, down to the one that is refused
alone. That one is left alone for a while, and the others go on.
"""

from collections.abc import Sequence

from mainspring.domain.limits import LimitKey

PAUSE_SECONDS = 30.0


class RefusedKeys:
    """What one worker knows of them; instants are monotonic."""

    def __init__(self) -> None:
        self._most: int | None = None
        self._until: dict[LimitKey, float] = {}

    def allowed(
        self, keys: Sequence[LimitKey], now: float
    ) -> tuple[Sequence[LimitKey], Sequence[LimitKey]]:
        """The keys to ask for now, and those for later; what is left alone is in neither."""
        if self._until:
            self._until = {key: until for key, until in self._until.items() if until > now}
            keys = [key for key in keys if key not in self._until]
        return (keys, ()) if self._most is None else (keys[: self._most], keys[self._most :])

    def served(self, keys: Sequence[LimitKey]) -> None:
        """The claim of these was accepted."""
        if self._most is not None:
            self._most = None if len(keys) < self._most else self._most * 2

    def refused(self, keys: Sequence[LimitKey], now: float) -> LimitKey | None:
        """The claim of these was refused; the key at fault, if that is known now."""
        self._most = max(len(keys) // 2, 1)
        if len(keys) > 1:
            return None
        self._until[keys[0]] = now + PAUSE_SECONDS
        return keys[0]
