"""The bytes of real blocks, read from a node that plays them."""

import pytest

from api.node_bytes.blocks import BlockReader, NoCbor
from api.sources.node_addresses import NodeAddresses
from devnet.blocks import Block
from devnet.server import NodeServer
from shared.ledger import Point
from tests.chain.recordings import FILES, File


@pytest.mark.parametrize(
    "file",
    [each for each in FILES.values() if each.name != "mainnet-conway-defaults.jsonl.xz"],
    ids=lambda each: each.name,
)
async def test_the_bytes_of_real_transactions_have_their_ids(file: File) -> None:
    """The first block of a network, too, before which there is an epoch boundary block in mainnet."""
    chain = file.played()
    async with NodeServer(chain) as node:
        reader = BlockReader(file.network, NodeAddresses([node.url]))
        blocks = [block for block in node.blocks if block.decoded()["type"] != "ebb"]
        wanted = [at for at, block in enumerate(blocks) if at and block.decoded()["transactions"]][:20]
        assert wanted
        if file.genesis is not None:
            wanted.append(0)
        for at in wanted:
            block, before = point_of(blocks[at]), point_of(blocks[at - 1]) if at else None
            found = await reader.transactions("key", block, before)
            transactions = blocks[at].decoded()["transactions"]
            assert [each.hex() for each in found.hashes] == [tx["id"] for tx in transactions]
            assert [found.cbor(each).hex() for each in found.hashes] == [tx["cbor"] for tx in transactions]
        await reader.close()


async def test_defaults_of_ogmios_have_no_cbor() -> None:
    async with NodeServer(FILES["conway-defaults"].played()) as node:
        reader = BlockReader("mainnet", NodeAddresses([node.url]))
        before, block = node.blocks[:2]
        with pytest.raises(NoCbor):
            await reader.transactions("key", point_of(block), point_of(before))
        await reader.close()


def point_of(block: Block) -> Point:
    return Point(block.slot, bytes.fromhex(block.id))
