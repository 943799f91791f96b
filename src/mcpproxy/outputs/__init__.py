"""May this result pass? Guards on the bytes, the declared schema on a decoded view, cutting to size."""
