"""Fixtures of the tests around a chain."""

from tests.chain.fixtures import ledgerline, new_ledgerline

__all__ = ["ledgerline", "new_ledgerline"]
