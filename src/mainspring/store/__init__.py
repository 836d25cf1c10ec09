"""One function per named SQL statement: rows in, domain values out."""
