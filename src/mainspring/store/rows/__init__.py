"""Values that the statements of several nouns have in common: read from rows, or written to
parameters. No statement is run here."""
