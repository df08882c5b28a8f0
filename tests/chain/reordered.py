"""Forks of a recorded chain: its transactions in other blocks, some of them late and some missing.

The dependencies of each transaction still precede it: the outputs that it spends or reads, and earlier certificates
and withdrawals of the same accounts and pools. So the fork obeys the ledger's rules as far as an index can tell.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from itertools import chain
from random import Random
from typing import Any

import msgspec

from devnet.blocks import Block, Genesis
from devnet.networks import Network

Json = dict[str, Any]

MISSED = 0.05  # blocks that are never made
LOST = 0.03  # transactions that never come, with all that depend on them
LATE = 0.3  # transactions that wait for another block


class Given:
    """A chain of given blocks for a node to play; `grow` shows those that are not `visible` at first."""

    def __init__(
        self,
        network: Network,
        genesis: Genesis,
        blocks: Sequence[Block],
        visible: int | None = None,
        forks: tuple[tuple[int, int], ...] | None = None,
    ) -> None:
        """`forks` are those of the public network by default."""
        self.network, self.genesis = network, genesis
        self.forks = network.forks if forks is None else forks
        self.blocks = list(blocks[:visible])
        self._rest = list(blocks[len(self.blocks) :])

    @property
    def eras(self) -> tuple[tuple[str, int], ...]:
        """As on the public network."""
        return self.network.eras

    def grow(self, count: int) -> list[Block]:
        """Append up to `count` blocks and return them; fewer if the chain ends."""
        fresh, self._rest = self._rest[:count], self._rest[count:]
        self.blocks += fresh
        return fresh


def fork(blocks: Sequence[Block], after: int, seed: int) -> list[Block]:
    """The blocks up to index `after`, and others with the transactions of the blocks that followed."""
    random = Random(seed)
    found, later = list(blocks[: after + 1]), [block.decoded() for block in blocks[after + 1 :]]
    needs = needed(chain.from_iterable(content.get("transactions", ()) for content in later))
    done, lost, waiting = set[str](), set[str](), list[Json]()
    for content, block in zip(later, blocks[after + 1 :], strict=True):
        fresh = content.get("transactions", ())
        waiting += fresh
        lost.update(tx["id"] for tx in fresh if random.random() < LOST)
        is_boundary = content["type"] == "ebb"  # without transactions or an issuer
        if random.random() < MISSED and not is_boundary:
            continue
        taken, late = list[Json](), list[Json]()
        for tx in waiting:
            if tx["id"] in lost or needs[tx["id"]] & lost:
                lost.add(tx["id"])
            elif is_boundary or not needs[tx["id"]] <= done or random.random() < LATE:
                late.append(tx)
            else:
                taken.append(tx)
                done.add(tx["id"])
        waiting = late
        found.append(made(block, content, found[-1], taken, seed))
    return found


def made(block: Block, content: Json, parent: Block, transactions: list[Json], seed: int) -> Block:
    """A block with another parent and other transactions, in the same slot and by the same pool."""
    digest = blake2b(f"{seed} {block.id} {parent.id}".encode(), digest_size=32).hexdigest()
    height = parent.height + (content["type"] != "ebb")
    told = content | {"id": digest, "ancestor": parent.id, "height": height}
    if "transactions" in content or transactions:
        told["transactions"] = transactions
    return Block(block.slot, digest, height, parent.id, block.era, msgspec.json.encode(told))


def needed(transactions: Iterable[Json]) -> dict[str, set[str]]:
    """The direct dependencies of each of these transactions among the earlier ones, by id."""
    found: dict[str, set[str]] = {}
    last: dict[str, str] = {}  # to make an output, or to change an account, a pool or a vote
    for tx in transactions:
        found[tx["id"]] = {last[name] for name in uses(tx) if name in last}
        for name in (tx["id"], *changes(tx)):
            last[name] = tx["id"]
    return found


def uses(tx: Json) -> Iterator[str]:
    for kind in ("inputs", "collaterals", "references"):
        yield from (source["transaction"]["id"] for source in tx.get(kind, ()))
    yield from changes(tx)


def changes(tx: Json) -> Iterator[str]:
    """Objects that transactions must change in their original order: accounts, pools and representatives."""
    yield from tx.get("withdrawals", ())
    for certificate in tx.get("certificates", ()):
        pool, voter = certificate.get("stakePool", {}), certificate.get("delegateRepresentative", {})
        yield from (str(each) for each in (certificate.get("credential"), pool.get("id"), voter.get("id")) if each)
