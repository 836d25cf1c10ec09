"""How much a claim of a worker over HTTP may bring at once."""

CLAIM_BYTES = 4 * 1024 * 1024
_FIRST_STEP, _LARGEST_STEP = 16, 64
# What the answer says of a job besides its payload and the like.
_BESIDES = 500


class ClaimBudget:
    """The bytes that are left of one claim. How large a job is shows only once it is claimed, so
    few are claimed at first, and never so many that they could not be held in memory."""

    def __init__(self, most: int = CLAIM_BYTES) -> None:
        self._left = most
        self._is_untouched = True
        self._step = _FIRST_STEP
        self.is_used_up = False

    def step(self, wanted: int) -> int:
        """How many of so many jobs to claim next."""
        step, self._step = self._step, min(2 * self._step, _LARGEST_STEP)
        return min(step, wanted)

    def admits(self, *texts: str | None) -> bool:
        """Whether a job with these texts is within the budget, as the first one always is. The
        first that is not uses it up: a smaller one does not overtake it."""
        self._left -= _BESIDES + sum(len(text.encode()) for text in texts if text)
        self.is_used_up = self.is_used_up or (self._left < 0 and not self._is_untouched)
        self._is_untouched = False
        return not self.is_used_up
