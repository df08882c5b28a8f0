"""Fixtures of the tests around a chain."""

import pytest

from tests.chain.fixtures import ledgerline, new_ledgerline

__all__ = ["ledgerline", "new_ledgerline"]

pytest.register_assert_rewrite("tests.chain.answers")
