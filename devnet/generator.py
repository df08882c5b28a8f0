"""Valid chains from a seed: the same seed and options make the same blocks, on every machine.

Each block draws on a random number generator of its own, seeded with its parent, so that a fork needs nothing but the
ledger at the point where it leaves; that is had by applying blocks to the nearest kept copy.
"""

from random import Random
from typing import Any, Self

import msgspec

from devnet.blocks import Block
from devnet.cast import Cast, PoolKeys
from devnet.draft import Draft, Impossible
from devnet.headers import Headers
from devnet.history import COPY_EVERY, History
from devnet.kinds import Kind, byron, contracts, governance, nested, payments, staking, tokens
from devnet.ledger import Ledger, lovelace_of
from devnet.networks import BY_NAME, Network
from devnet.parameters import PROTOCOL_MAJOR

Json = dict[str, Any]

KINDS: list[Kind] = [
    kind for module in (payments, tokens, contracts, staking, governance, nested, byron) for kind in module.KINDS
]
_TRIES = 8


class Options(msgspec.Struct, frozen=True):
    """What a generated chain is like.

    `density` is the mean number of transactions in a block, one block in ten has none; `plain` the part of them that
    are everyday payments, the others are of all kinds by turns. `eras` are (name, first epoch) in order: each lasts
    `era_epochs` epochs, then the chain leaps to the first epoch of the next; the last never ends.
    """

    seed: int = 7
    network: str = "preview"
    density: float = 5.0
    plain: float = 0.5
    blocks_per_epoch: int = 200
    era_epochs: int = 2
    eras: tuple[tuple[str, int], ...] = (("alonzo", 0), ("babbage", 2), ("conway", 4))


def options_of(network: str, **changes: Any) -> Options:
    """Options for a network: on those with a Byron era the chain has blocks of every era."""
    if BY_NAME[network].byron_epochs:
        changes.setdefault("eras", BY_NAME[network].eras)
    return Options(network=network, **changes)


class Generated:
    """A chain that grows for ever and forks anywhere."""

    def __init__(self, options: Options | None = None, blocks: int = 0) -> None:
        self.options = options or Options()
        self.network: Network = BY_NAME[self.options.network]
        self.cast = Cast(self.options.seed, self.network)
        self.genesis = self.cast.genesis
        self.blocks: list[Block] = []
        self.ledger = Ledger(self.network, self.genesis)
        self._history = History(self.network, self.genesis, self.blocks)
        self._headers = Headers(self.cast)
        self._seed = self.options.seed
        self.grow(blocks)

    @property
    def eras(self) -> tuple[tuple[str, int], ...]:
        return self.options.eras

    def grow(self, count: int = 1) -> list[Block]:
        for _ in range(count):
            self.blocks.append(self._next())
            if len(self.blocks) % COPY_EVERY == 0:
                self._history.keep(len(self.blocks), self.ledger)
        return self.blocks[len(self.blocks) - count :]

    def fork(self, after: int, seed: int, blocks: int = 0) -> Self:
        """Another chain that shares the blocks up to index `after` (-1 for none) and goes on by another seed."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.blocks = self.blocks[: after + 1]
        twin.ledger = self._history.after(after).copy()
        twin._history = self._history.shared(twin.blocks)
        twin._seed = seed
        twin.grow(blocks)
        return twin

    def _next(self) -> Block:
        parent = self.blocks[-1] if self.blocks else None
        random = Random(f"{self._seed} {parent.id if parent else 'genesis'}")
        slot = self._slot(random, parent)
        epoch = self.network.epoch_of(slot)
        era = self._era(epoch)
        if era == "byron" and (parent is None or self.network.epoch_of(parent.slot) < epoch):
            return self._headers.boundary(self.network, parent, epoch)
        self.ledger.enter(slot)
        transactions = self._transactions(random, era, slot)
        if era == "byron":
            return self._headers.byron(self.network, parent, slot, transactions)
        leader = self._leader(random)
        self.ledger.count_block(leader if isinstance(leader, str) else leader.cold_key)
        return self._headers.praos(era, parent, slot, leader, transactions)

    def _slot(self, random: Random, parent: Block | None) -> int:
        """The next block's slot: gaps are even on average, and an era that has lasted long enough ends."""
        if parent is None:
            return self.network.epoch_start(self.options.eras[0][1])
        if "slot" not in parent.content:  # the block after a boundary block may share its slot
            return parent.slot
        length = self.network.epoch_start(self.network.epoch_of(parent.slot) + 1) - self.network.epoch_start(
            self.network.epoch_of(parent.slot)
        )
        slot = parent.slot + random.randint(1, max(2 * length // self.options.blocks_per_epoch - 1, 1))
        for (_, first), (_, following) in zip(self.options.eras, self.options.eras[1:], strict=False):
            if first <= self.network.epoch_of(parent.slot) < following:
                last = min(first + self.options.era_epochs, following)
                return slot if self.network.epoch_of(slot) < last else self.network.epoch_start(following)
        return slot

    def _era(self, epoch: int) -> str:
        return [name for name, first in self.options.eras if first <= epoch][-1]

    def _leader(self, random: Random) -> PoolKeys | str:
        """A pool by its active stake, at times any registered one; a genesis delegate while there is none."""
        stakes = self.ledger.active_stakes()
        pools = [keys for keys in self.cast.pools if stakes.get(keys.id)]
        if pools and random.random() < 0.9:
            return random.choices(pools, [stakes[keys.id] for keys in pools])[0]
        if registered := [keys for keys in self.cast.pools if keys.id in self.ledger.pools]:
            return random.choice(registered)
        return random.choice(self.cast.delegates)

    def _transactions(self, random: Random, era: str, slot: int) -> list[Json]:
        """A block's transactions, each applied before the next is written, so that they may build on each other."""
        transactions = []
        if era != "byron" and len(self.ledger.wallets[self.cast.faucets[0]]) < 12:
            transactions.append(self._apply(self._endow(Draft(self.ledger, self.cast, random, era, slot))))
        kinds = [kind for kind in KINDS if _knows(era, kind)]
        everyday = byron.pay if era == "byron" else payments.pay
        for _ in range(_count(random, self.options.density)):
            for _ in range(_TRIES):
                kind = everyday if random.random() < self.options.plain else random.choice(kinds).write
                try:
                    tx = kind(Draft(self.ledger, self.cast, random, era, slot))
                except Impossible:
                    continue
                transactions.append(self._apply(tx))
                break
        return transactions

    def _apply(self, tx: Json) -> Json:
        self.ledger.apply_transaction(tx)
        return tx

    def _endow(self, draft: Draft) -> Json:
        """Spread a faucet's funds: to the first faucet in many outputs, and a little to people."""
        sources = [reference for faucet in self.cast.faucets for reference in draft.references(faucet)]
        richest = max(sources, key=lambda source: lovelace_of(self.ledger.unspent[source]))
        share = lovelace_of(draft.spend(richest)) // 50
        for _ in range(20):
            draft.pay(self.cast.faucets[0], share)
        for _ in range(40):
            draft.pay(self.cast.somebody(draft.random), draft.random.randint(share // 10_000, share // 500))
        return draft.done()


def _knows(era: str, kind: Kind) -> bool:
    return PROTOCOL_MAJOR[kind.since] <= PROTOCOL_MAJOR[era] <= PROTOCOL_MAJOR[kind.until]


def _count(random: Random, density: float) -> int:
    """Transactions of one block: none in one of ten, four times the mean in one of fifty, else spread about it."""
    chance = random.random()
    if chance < 0.12:
        return 0 if chance < 0.1 else round(4 * density)
    return random.randint(0, max(round(2 * density), 1))
