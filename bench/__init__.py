"""Mainspring and its rivals, measured in one run on one PostgreSQL server."""
