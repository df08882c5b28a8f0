"""The node: the chain that it has selected, which grows and forks on demand, and the ledger after each block.

A mempool belongs here, beside the ledger that its transactions must fit.
"""

from collections import Counter, deque
from typing import Any, Protocol

from devnet.blocks import Block, Chain
from devnet.dialect import Dialect
from devnet.ledger import Ledger


class Follower(Protocol):
    """A client that follows the chain, as the node sees it."""

    def chain_grew(self) -> None:
        """There are more blocks."""

    def chain_forked(self, ancestor: int) -> None:
        """Every block above the one at index `ancestor` has been removed."""

    def drop(self) -> None:
        """End the connection."""


class Node:
    """Plays `chain` in the words of the Ogmios that `dialect` describes.

    A `syncing` node knows only the ledger of its tip, so in Byron it refuses Shelley's genesis. Any other has seen more
    of the chain than it plays. Every method that changes the chain tells the followers at once. For tests: `requests`
    counts the requests by method, `delay_s` delays each answer, and `injected` holds raw answers for the next
    `nextBlock` requests.
    """

    def __init__(self, chain: Chain, dialect: Dialect | None = None, *, syncing: bool = False) -> None:
        self.chain = chain
        self.syncing = syncing
        self.dialect = dialect or Dialect()
        self.blocks: list[Block] = []
        self.frames: list[bytes] = []
        self.tip_json = b'"origin"'
        self.followers: set[Follower] = set()
        self.requests: Counter[str] = Counter()
        self.delay_s = 0.0
        self.injected: deque[bytes] = deque()
        self._index: dict[str, int] = {}
        self._ledger = Ledger(chain.network, chain.genesis)
        self.extend(chain.blocks)

    @property
    def tip(self) -> Block | None:
        return self.blocks[-1] if self.blocks else None

    @property
    def connections(self) -> int:
        return len(self.followers)

    def extend(self, blocks: list[Block]) -> None:
        """Append blocks; the first must follow the tip."""
        for block in blocks:
            assert not self.blocks or block.ancestor == self.blocks[-1].id, f"block {block.point} does not follow"
            self._index[block.id] = len(self.blocks)
            self.blocks.append(block)
            self.frames.append(self.dialect.block(block.content))
        self._update_tip()
        for follower in self.followers:
            follower.chain_grew()

    def grow(self, count: int = 1) -> int:
        """Let the chain make up to `count` more blocks; returns how many it made."""
        fresh = self.chain.grow(count)
        self.extend(fresh)
        return len(fresh)

    def fork(self, ancestor: int, blocks: list[Block]) -> None:
        """Replace every block above the one at index `ancestor` (-1 for all) with others."""
        if self._ledger.length > ancestor + 1:
            self._ledger.rewind(ancestor + 1)
        for block in self.blocks[ancestor + 1 :]:
            del self._index[block.id]
        del self.blocks[ancestor + 1 :], self.frames[ancestor + 1 :]
        for follower in self.followers:
            follower.chain_forked(ancestor)
        self.extend(blocks)

    def switch(self, chain: Chain) -> int:
        """Play another chain from now on; returns the index of the last common block, -1 if there is none."""
        shared = 0
        for ours, theirs in zip(self.blocks, chain.blocks, strict=False):
            if ours.id != theirs.id:
                break
            shared += 1
        self.chain = chain
        self.fork(shared - 1, chain.blocks[shared:])
        return shared - 1

    def inject(self, answer: bytes) -> None:
        """Answer the next `nextBlock` request with these bytes."""
        self.injected.append(answer)

    def drop_connections(self) -> None:
        for follower in list(self.followers):
            follower.drop()

    def index_of(self, point: Any) -> int | None:
        """The index of the block at a point, -1 for the origin, None if the point is not on this chain."""
        match point:
            case "origin":
                return -1
            case {"slot": slot, "id": id_}:
                index = self._index.get(id_)
                return index if index is not None and self.blocks[index].slot == slot else None
            case _:
                return None

    def point_json(self, index: int) -> bytes:
        if index < 0:
            return b'"origin"'
        block = self.blocks[index]
        return b'{"slot":%d,"id":"%b"}' % (block.slot, block.id.encode())

    def ledger_after(self, index: int) -> Ledger:
        """The ledger after the block at an index, -1 for genesis; valid until the next call or change of the chain."""
        if self._ledger.length > index + 1:
            self._ledger.rewind(index + 1)
        self._ledger.advance(self.blocks, index + 1)
        return self._ledger

    def _update_tip(self) -> None:
        if tip := self.tip:
            self.tip_json = b'{"slot":%d,"id":"%b","height":%d}' % (tip.slot, tip.id.encode(), tip.height)
        else:
            self.tip_json = b'"origin"'
