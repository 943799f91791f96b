"""Other programs, pointed at the proxy."""
