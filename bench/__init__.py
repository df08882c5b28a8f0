"""Measurements against floors, the best that the machine can do. See README.md."""
