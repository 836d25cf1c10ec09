"""Errors of secrets."""

from mainspring.domain.errors import MainspringError


class UnreadableSecret(MainspringError):
    """An encrypted value cannot be read; without a `key_id` no key will ever fit."""

    code = "unreadable_secret"

    def __init__(self, field: str, key_id: str | None) -> None:
        problem = (
            "was changed, or moved from another field, definition or tenant"
            if key_id is None
            else f"is encrypted with the key {key_id}, which is not among this process's "
            "MAINSPRING_ENCRYPTION_KEYS"
        )
        super().__init__(f"{field} {problem}")
        self.field, self.key_id = field, key_id
