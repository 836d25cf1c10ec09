"""Use cases: what an interface can ask for, whichever it is."""
