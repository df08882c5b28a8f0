"""Snapshots: a consistent copy of one network's index in a folder, and the way back into an empty network."""
