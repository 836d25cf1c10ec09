"""The command line: prints, and starts the long-running roles."""
