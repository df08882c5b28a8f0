"""The ledger at any block of a chain, had by applying blocks to the nearest kept copy."""

from devnet.blocks import Block, Genesis
from devnet.ledger import Ledger
from devnet.networks import Network

COPY_EVERY = 250  # blocks between two kept copies


class History:
    """Ledgers along a row of blocks, which may grow, and be cut off after `forget`."""

    def __init__(self, network: Network, genesis: Genesis, blocks: list[Block]) -> None:
        self._blocks = blocks
        self._copies = {0: Ledger(network, genesis)}
        self._latest = (0, self._copies[0].copy())

    def after(self, index: int) -> Ledger:
        """The ledger after the block at an index, -1 for genesis. To be read only, and only until the next call."""
        length, ledger = self._latest
        if length > index + 1:
            length = max(kept for kept in self._copies if kept <= index + 1)
            ledger = self._copies[length].copy()
        for block in self._blocks[length : index + 1]:
            ledger.apply(block.decoded())
            length += 1
            if length % COPY_EVERY == 0 and length not in self._copies:
                self._copies[length] = ledger.copy()
        self._latest = (length, ledger)
        return ledger

    def forget(self, length: int) -> None:
        """The blocks from index `length` on are gone."""
        self._copies = {kept: ledger for kept, ledger in self._copies.items() if kept <= length}
        if self._latest[0] > length:
            self._latest = (0, self._copies[0].copy())

    def keep(self, length: int, ledger: Ledger) -> None:
        """Take a ledger that somebody has anyway."""
        self._copies[length] = ledger.copy()

    def shared(self, blocks: list[Block]) -> "History":
        """The history of another chain whose first blocks are ours; all of `blocks` are."""
        twin = object.__new__(History)
        twin._blocks = blocks
        twin._copies = {kept: ledger for kept, ledger in self._copies.items() if kept <= len(blocks)}
        twin._latest = (0, self._copies[0].copy())
        return twin
