"""What the index does not keep, read through from a node when it is asked for: docs/decisions/0069."""
