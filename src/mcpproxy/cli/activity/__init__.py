"""What happened, on a terminal."""
