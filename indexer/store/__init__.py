"""Writes blocks, rollbacks and the end of bulk.

A batch of blocks is one commit, inside which the tip moves. A long rollback and the end of bulk take several commits.
"""
