"""The way of one call."""
