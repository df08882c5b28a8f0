"""What is read through from the node of each network."""

from collections.abc import Mapping

import msgspec

from api import errors
from api.node_bytes.blocks import BlockReader
from api.node_bytes.mempool import MempoolReader
from api.sources.node_addresses import NodeAddresses
from shared.network import Network


class NodeReaders(msgspec.Struct, frozen=True):
    """The readers by name of their network. No connection is made before the first reading."""

    blocks_by_network: Mapping[str, BlockReader]
    mempool_by_network: Mapping[str, MempoolReader]

    @classmethod
    def at(cls, addresses: Mapping[str, NodeAddresses]) -> "NodeReaders":
        """Readers of the nodes at these addresses."""
        return cls(
            {name: BlockReader(name, each) for name, each in addresses.items()},
            {name: MempoolReader(name, each) for name, each in addresses.items()},
        )

    def blocks(self, network: Network) -> BlockReader:
        """Raises Refusal if this API knows no node of the network."""
        reader = self.blocks_by_network.get(network.name)
        if reader is None:
            raise errors.no_node_to_read(network.name)
        return reader

    def mempool(self, network: Network) -> MempoolReader:
        """The same."""
        reader = self.mempool_by_network.get(network.name)
        if reader is None:
            raise errors.no_node_to_read(network.name)
        return reader

    def blocks_if_any(self, network: Network) -> BlockReader | None:
        """The same; None if this API knows no node of the network."""
        return self.blocks_by_network.get(network.name)

    async def close(self) -> None:
        for blocks in self.blocks_by_network.values():
            await blocks.close()
        for mempool in self.mempool_by_network.values():
            await mempool.close()
