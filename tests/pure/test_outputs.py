"""Spent outputs as they are packed."""

import pytest

from indexer.rows.outputs import pack_spender, unpack_spenders
from shared.ledger import TxId


@pytest.mark.parametrize("slot_no", [-3, 0, 1 << 40])
def test_an_entry_of_spender_unpacks_to_its_values(slot_no: int) -> None:
    spent = [(TxId(slot_no << 16 | place), place, TxId(1 << 50 | place)) for place in (0, 1, 65_535)]
    entries = b"".join(pack_spender(spent_by, made_by, index) for made_by, index, spent_by in spent)
    assert list(unpack_spenders(slot_no, entries)) == spent
