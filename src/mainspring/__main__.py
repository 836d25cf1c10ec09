"""`mainspring`, which is also `python -m mainspring`: the command line."""


def main() -> None:
    """Run a command; an interrupt while its modules are read ends it as quietly as one later."""
    try:
        from mainspring.cli.main import main as run  # noqa: PLC0415 - half a second of reading
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    run()


if __name__ == "__main__":
    main()
