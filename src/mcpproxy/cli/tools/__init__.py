"""Tools, from a terminal."""
