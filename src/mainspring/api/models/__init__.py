"""What each endpoint takes and answers."""
