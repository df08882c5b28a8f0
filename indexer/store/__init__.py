"""Writes blocks, rollbacks and the end of bulk.

Consecutive blocks of one epoch are one commit, inside which the tip moves. A long rollback and the end of bulk take
several commits.
"""
