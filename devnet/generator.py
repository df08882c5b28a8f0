"""Valid chains from a seed: the same seed and options make the same blocks, on every machine.

Each block has its own random number generator, seeded with its parent's id. So a fork needs only the
ledger after the last common block: a copy of the current ledger, rewound.
"""

from datetime import UTC, datetime
from random import Random
from typing import Any, Self

import msgspec

from devnet import faucet
from devnet.blocks import Block, Offer, nothing
from devnet.cast import Cast, PoolKeys
from devnet.draft import Draft, Impossible
from devnet.headers import Headers
from devnet.ledger import Ledger, lovelace_of
from devnet.networks import BY_NAME, Network
from devnet.parameters import PROTOCOL_MAJOR
from devnet.transactions import TransactionKind, byron, contracts, governance, nested, payments, staking, tokens

Json = dict[str, Any]

KINDS: list[TransactionKind] = [
    kind for module in (payments, tokens, contracts, staking, governance, nested, byron) for kind in module.KINDS
]
_TRIES = 8


class Options(msgspec.Struct, frozen=True):
    """Options of a generated chain.

    `density` is roughly the mean number of transactions per block; some blocks have none, see _count. `plain` is the
    share of everyday payments; the other transactions are of random kinds. `eras` are (name, first epoch) in order:
    each lasts `era_epochs` epochs, then the chain jumps to the first epoch of the next. The last era never ends.
    `forks` are (major protocol version, first epoch) within Conway; None: to protocol 10 in its second epoch, and to 11
    in its fourth. With `faucet`, the faucet key has ada from the first Shelley block on.
    """

    seed: int = 7
    network: str = "preview"
    density: float = 5.0
    plain: float = 0.5
    blocks_per_epoch: int = 200
    era_epochs: int = 2
    eras: tuple[tuple[str, int], ...] = (("alonzo", 0), ("babbage", 2), ("conway", 4))
    forks: tuple[tuple[int, int], ...] | None = None
    faucet: bool = False


def options_of(network: str, **changes: Any) -> Options:
    """Options for a network. If it began in Byron, the chain has blocks of every era."""
    if BY_NAME[network].byron_epochs:
        changes.setdefault("eras", BY_NAME[network].eras)
    return Options(network=network, **changes)


def options_until_now(options: Options, blocks: int) -> Options:
    """The same options with later eras, so that a chain of `blocks` blocks ends at least two epochs ago.

    The current time is in the last era. Only for a network without Byron, whose epochs can begin anywhere.
    """
    network = BY_NAME[options.network]
    assert not network.byron_epochs
    present = network.epoch_of(network.slot_at(datetime.now(UTC)))
    first = present - max(blocks // options.blocks_per_epoch + 2, options.eras[-1][1])
    eras = tuple((name, first + epoch) for name, epoch in options.eras)
    forks = None if options.forks is None else tuple((major, first + epoch) for major, epoch in options.forks)
    return msgspec.structs.replace(options, eras=eras, forks=forks)


class Generated:
    """A chain that can grow without end and fork at any block.

    With `on_time`, a new block has the current slot, instead of one after a random gap.
    """

    def __init__(self, options: Options | None = None, blocks: int = 0) -> None:
        self.options = options or Options()
        self.network: Network = BY_NAME[self.options.network]
        self.cast = Cast(self.options.seed, self.network)
        self.genesis = self.cast.genesis
        self.blocks: list[Block] = []
        self.ledger = Ledger.at_genesis(self)
        self._headers = Headers(self.cast)
        self._seed = self.options.seed
        self._faucet_key_address = faucet.address(self.network.address_tag)
        self.on_time = False
        self.grow(blocks)

    @property
    def eras(self) -> tuple[tuple[str, int], ...]:
        return self.options.eras

    @property
    def forks(self) -> tuple[tuple[int, int], ...]:
        if self.options.forks is not None:
            return self.options.forks
        return next((((10, first + 1), (11, first + 3)) for name, first in self.eras if name == "conway"), ())

    def grow(self, count: int = 1, offer: Offer = nothing) -> list[Block]:
        """Append `count` blocks and return them. Each begins with the transactions offered for it."""
        for _ in range(count):
            self.blocks.append(self._next(offer))
            self.ledger.finish_block()
        return self.blocks[len(self.blocks) - count :]

    def fork(self, after: int, seed: int, blocks: int = 0) -> Self:
        """Another chain that shares the blocks up to index `after` (-1 for none) and continues from another seed."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.blocks = self.blocks[: after + 1]
        twin.ledger = self.ledger.copy()
        twin.ledger.rewind(after + 1)
        twin.ledger.advance(twin.blocks, after + 1)
        twin._seed = seed
        twin.grow(blocks)
        return twin

    def _next(self, offer: Offer) -> Block:
        parent = self.blocks[-1] if self.blocks else None
        random = Random(f"{self._seed} {parent.id if parent else 'genesis'}")
        slot = self._slot(random, parent)
        epoch = self.network.epoch_of(slot)
        era = self._era(epoch)
        if era == "byron" and (parent is None or self.network.epoch_of(parent.slot) < epoch):
            return self._headers.boundary(self.network, parent, epoch)
        self.ledger.begin_era(era)
        self.ledger.enter(slot)
        transactions = [self._apply(tx) for tx in offer(self.ledger, era, slot)]
        transactions += self._transactions(random, era, slot)
        if era == "byron":
            return self._headers.byron(self.network, parent, slot, transactions)
        leader = self._leader(random)
        self.ledger.count_block(leader if isinstance(leader, str) else leader.cold_key)
        return self._headers.praos(era, parent, slot, leader, transactions)

    def _slot(self, random: Random, parent: Block | None) -> int:
        """The next block's slot: the current one, or one after a random gap, in the next era once this one is over."""
        if parent is None:
            return self.network.epoch_start(self.options.eras[0][1])
        if self.on_time:
            return max(self.network.slot_at(datetime.now(UTC)), parent.slot + 1)
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
        """A random pool by active stake, sometimes any registered pool; a genesis delegate if there are no pools."""
        stakes = self.ledger.active_stakes()
        pools = [keys for keys in self.cast.pools if stakes.get(keys.id)]
        if pools and random.random() < 0.9:
            return random.choices(pools, [stakes[keys.id] for keys in pools])[0]
        if registered := [keys for keys in self.cast.pools if keys.id in self.ledger.pools]:
            return random.choice(registered)
        return random.choice(self.cast.delegates)

    def _transactions(self, random: Random, era: str, slot: int) -> list[Json]:
        """The transactions of a block. Each is applied before the next is made, so later ones can build on it."""
        transactions = []
        if era != "byron" and len(self.ledger.wallets[self.cast.faucets[0]]) < 12:
            transactions.append(self._apply(self._endow(Draft(self.ledger, self.cast, random, era, slot))))
        kinds = [kind for kind in KINDS if _exists(era, kind)]
        everyday = byron.pay if era == "byron" else payments.pay
        for _ in range(_count(random, self.options.density)):
            for _ in range(_TRIES):
                make = everyday if random.random() < self.options.plain else random.choice(kinds).make
                try:
                    tx = make(Draft(self.ledger, self.cast, random, era, slot))
                except Impossible:
                    continue
                transactions.append(self._apply(tx))
                break
        return transactions

    def _apply(self, tx: Json) -> Json:
        self.ledger.apply_transaction(tx)
        return tx

    def _endow(self, draft: Draft) -> Json:
        """Split the largest output of a faucet into many outputs of the first faucet, and some for people.

        The address of the faucet key also gets some, if it has none.
        """
        sources = [reference for address in self.cast.faucets for reference in draft.references(address)]
        richest = max(sources, key=lambda source: lovelace_of(self.ledger.unspent[source]))
        share = lovelace_of(draft.spend(richest)) // 50
        for _ in range(20):
            draft.pay(self.cast.faucets[0], share)
        for _ in range(40):
            draft.pay(self.cast.somebody(draft.random), draft.random.randint(share // 10_000, share // 500))
        if self.options.faucet and not self.ledger.wallets.get(self._faucet_key_address):
            for _ in range(faucet.OUTPUTS):
                draft.pay(self._faucet_key_address, faucet.OUTPUT_LOVELACE)
        return draft.done()


def _exists(era: str, kind: TransactionKind) -> bool:
    return PROTOCOL_MAJOR[kind.since] <= PROTOCOL_MAJOR[era] <= PROTOCOL_MAJOR[kind.until]


def _count(random: Random, density: float) -> int:
    """How many transactions to make: none in 10 % of blocks, four times the mean in 2 %, else 0 to twice the mean."""
    chance = random.random()
    if chance < 0.12:
        return 0 if chance < 0.1 else round(4 * density)
    return random.randint(0, max(round(2 * density), 1))
