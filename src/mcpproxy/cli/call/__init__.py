"""A call from a terminal."""
