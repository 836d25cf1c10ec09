"""Examples in the help of commands."""


def example(*lines: str) -> str:
    """The examples at the end of a command's help."""
    return "\n\n".join(("Examples:" if len(lines) > 1 else "Example:", *lines))
