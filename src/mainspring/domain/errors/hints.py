"""What errors about names that do not exist end with."""


def hint(suggestion: str | None) -> str:
    """Empty if nothing is suggested."""
    return f"; did you mean {suggestion!r}?" if suggestion else ""
