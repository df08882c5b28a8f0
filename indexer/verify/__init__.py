"""Recompute the index from history or from the node, and compare."""
