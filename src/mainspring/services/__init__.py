"""Use cases: what a front door can ask for, whichever door it is."""
