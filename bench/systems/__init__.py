"""One driver per system. Only processes of their own import these; see bench.catalogue."""
