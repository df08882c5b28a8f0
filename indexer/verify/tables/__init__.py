"""Compare derived tables with what history says they must have, and with each other."""
