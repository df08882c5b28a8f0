"""The look-ups of the resolver, without a database: any query fails the test."""

from typing import Any, cast

import pytest

from indexer.blocks.packed_block import Lookups
from indexer.rows import caches, tables
from indexer.rows.caches import UNCOMMITTED_PARTS, ResolvedOutput, UnspentOutputs
from indexer.rows.resolver import FirstFree, Resolver
from shared import packed
from shared.ledger import AddressNo, AssetNo, PolicyNo, PoolNo, StakeNo, TxId
from shared.network import PREVIEW

FIRST_FREE = FirstFree(AddressNo(1), StakeNo(1), PoolNo(1), PolicyNo(1), AssetNo(1))
NO_DATABASE = cast(Any, None)


def _block(tx_hash: bytes, *spent: bytes) -> Lookups:
    return Lookups([tx_hash], list(spent), [], [], [], [])


async def test_outputs_of_blocks_that_are_being_built_are_not_looked_up() -> None:
    resolver = Resolver(PREVIEW, FIRST_FREE)
    before = _block(bytes(32))
    block = _block(bytes([1]) * 32, packed.output_key(bytes(32), 0))
    found = await resolver.look_up(NO_DATABASE, [block], [before])
    assert found[tables.ADDRESS] == []


def test_an_output_of_two_forks_is_forgotten_once_it_is_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Caches survive a rollback. A returning transaction has another tx_id; the older half keeps its first one."""
    monkeypatch.setattr(caches, "MAX_OUTPUTS", 2)
    unspent, key = UnspentOutputs(), packed.output_key(bytes(32), 0)
    other = packed.output_key(bytes([1]) * 32, 0)

    def made(tx_id: int) -> ResolvedOutput:
        return ResolvedOutput(
            TxId(tx_id), 0, packed.pack_output(AddressNo(1), 5, {}), 5, AddressNo(1), None, None, {}, 0
        )

    unspent.add({key: made(7), other: made(8)})
    for _ in range(UNCOMMITTED_PARTS):
        unspent.trim()
    unspent.add({key: made(9)})
    found = unspent.find(key)
    assert found is not None
    assert found.tx_id == 9
    unspent.forget({key})
    assert unspent.find(key) is None
    assert unspent.find(other) is not None
