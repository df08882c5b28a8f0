"""Blocks and epochs, as the API must show them."""

from collections import defaultdict
from hashlib import blake2b

from tests.chain.model import Json, Ledger, Transaction, bech32


class Blocks:
    """The blocks so far, in order, with the transactions of each; epoch boundary blocks are left out."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.blocks: list[Json] = []
        self.slots: list[int] = []
        self.transactions: list[list[Transaction]] = []
        self.of_epoch: dict[int, list[int]] = defaultdict(list)

    def forward(self, block: Json, transactions: list[Transaction]) -> None:
        if block["type"] == "ebb":
            return
        self.of_epoch[self.ledger.clock.epoch_of(self.ledger.slot)].append(len(self.blocks))
        self.blocks.append(block)
        self.slots.append(self.ledger.slot)
        self.transactions.append(transactions)

    def info(self, place: int) -> Json:
        """GET /v1/blocks/:block, for the block at this place."""
        block, slot, clock = self.blocks[place], self.slots[place], self.ledger.clock
        neighbours = [self.blocks[at]["id"] if 0 <= at < len(self.blocks) else None for at in (place - 1, place + 1)]
        epoch = clock.epoch_of(slot)
        return {
            "block_hash": block["id"],
            "block_no": block["height"],
            "slot_no": slot,
            "epoch_no": epoch,
            "epoch_slot": slot - clock.first_slot(epoch),
            "block_time": clock.time(slot),
            "pool_id": None if slot < clock.byron_slots else self.issuer(place),
            "size": block["size"]["bytes"],
            "tx_count": len(self.transactions[place]),
            **self.sums([place]),
            "previous_block": neighbours[0],
            "next_block": neighbours[1],
        }

    def issuer(self, place: int) -> str:
        """The id of the pool or genesis delegate that made a block after Byron."""
        key = self.blocks[place]["issuer"]["verificationKey"]
        return bech32("pool", blake2b(bytes.fromhex(key), digest_size=28).digest())

    def listed(self, place: int) -> list[Json]:
        """All of GET /v1/blocks/:block/transactions, in the block's order."""
        return [
            {"tx_hash": tx.tx_hash, "tx_index": index, "fee": tx.fee, "size": tx.size}
            for index, tx in enumerate(self.transactions[place])
        ]

    def epoch(self, epoch: int) -> Json:
        """GET /v1/epochs/:epoch"""
        places, clock = self.of_epoch[epoch], self.ledger.clock
        first, beyond = clock.first_slot(epoch), clock.first_slot(epoch + 1)
        return {
            "epoch_no": epoch,
            "start_time": clock.time(first),
            "end_time": clock.time(beyond),
            "first_slot_no": first,
            "last_slot_no": beyond - 1,
            "block_count": len(places),
            "tx_count": sum(len(self.transactions[place]) for place in places),
            **self.sums(places),
            "first_block": self._brief(places[0]),
            "last_block": self._brief(places[-1]),
        }

    def sums(self, places: list[int]) -> Json:
        """Fees and outputs of some blocks, in a chain from the origin."""
        every = [tx for place in places for tx in self.transactions[place]]
        return {
            "fees": str(sum(tx.fee or 0 for tx in every)),
            "output": str(sum(output.lovelace for tx in every for _, output in tx.outputs)),
        }

    def _brief(self, place: int) -> Json:
        block, slot = self.blocks[place], self.slots[place]
        return {
            "block_hash": block["id"],
            "block_no": block["height"],
            "slot_no": slot,
            "block_time": self.ledger.clock.time(slot),
        }
