"""What the resolver looks up, without a database: a query fails the test."""

from typing import Any, cast

from indexer.blocks.packed_block import Lookups
from indexer.rows.resolver import FirstFree, Resolver
from shared import packed
from shared.ledger import AddressNo, AssetNo, PolicyNo, PoolNo, StakeNo
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
    assert found.addresses == []
