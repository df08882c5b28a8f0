"""Measurements against floors: what the machine would do at best. See README.md."""
