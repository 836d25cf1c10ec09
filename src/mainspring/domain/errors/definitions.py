"""Errors about definitions; the tree is drawn in `errors`."""

from mainspring.domain.errors import InputError, UnknownDefinition


class InactiveDefinition(UnknownDefinition):
    """The definition was deactivated, so it takes no jobs."""

    code = "inactive_definition"

    def __init__(self, key: str) -> None:
        InputError.__init__(
            self,
            f"definition {key!r} is deactivated; activate it with "
            f"`mainspring definitions activate {key}`",
        )
        self.key, self.suggestion = key, None
