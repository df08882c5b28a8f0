"""The ledger in plain code: the answers that the API must give about a chain.

It follows docs/http-api.md and the ledger's rules, and shares no code with the indexer, so that the two can disagree.
It reads blocks as Ogmios writes them, keeps everything in dictionaries, and sorts and filters lists on each question.
It has no rollback: a chain after a rollback is another model with the surviving blocks.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import blake2b
from typing import Any

import base58
import cbor2
from pycardano.address import PointerAddress
from pycardano.crypto.bech32 import Encoding, bech32_decode, bech32_encode, convertbits

Json = dict[str, Any]
OutputReference = tuple[str, int]

WITH_VALIDITY_FLAG = {"alonzo", "babbage", "conway"}


@dataclass(frozen=True)
class SlotClock:
    """Slots of one network: 20 s each before Shelley, 1 s afterwards."""

    start: datetime
    byron_slots: int
    byron_epoch: int
    epoch: int

    def time(self, slot: int) -> str:
        seconds = 20 * min(slot, self.byron_slots) + max(0, slot - self.byron_slots)
        return (self.start + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def epoch_of(self, slot: int) -> int:
        if slot < self.byron_slots:
            return slot // self.byron_epoch
        return self.byron_slots // self.byron_epoch + (slot - self.byron_slots) // self.epoch

    def first_slot(self, epoch: int) -> int:
        byron = self.byron_slots // self.byron_epoch
        return min(epoch, byron) * self.byron_epoch + max(0, epoch - byron) * self.epoch


CLOCKS = {
    "mainnet": SlotClock(datetime(2017, 9, 23, 21, 44, 51, tzinfo=UTC), 208 * 21_600, 21_600, 432_000),
    "preview": SlotClock(datetime(2022, 10, 25, tzinfo=UTC), 0, 4_320, 86_400),
    "preprod": SlotClock(datetime(2022, 6, 1, tzinfo=UTC), 4 * 21_600, 21_600, 432_000),
}


@dataclass(frozen=True)
class Output:
    """An output, with its datum (hex of its CBOR, or its hash) and its reference script as the node reports it."""

    address: str
    lovelace: int
    assets: dict[tuple[str, str], int]
    datum: str | None = None
    datum_hash: str | None = None
    script: Json | None = None


@dataclass
class Transaction:
    """The effects of one transaction, also with failed scripts.

    The source of an input is None if it was made before the first block of a chain that starts in the middle.
    """

    tx_hash: str
    block: Json
    slot: int
    fee: int | None
    size: int | None
    inputs: list[tuple[OutputReference, Output | None]]
    outputs: list[tuple[int, Output]]
    mint: dict[tuple[str, str], int] = field(default_factory=dict)
    certificates: list[Json] = field(default_factory=list)
    withdrawals: dict[str, int] = field(default_factory=dict)
    metadata: Json = field(default_factory=dict)
    datums: dict[str, str] = field(default_factory=dict)
    references: list[tuple[OutputReference, Output | None]] = field(default_factory=list)
    collaterals: list[tuple[OutputReference, Output | None]] = field(default_factory=list)
    declared: Json = field(default_factory=dict)  # as the node sent it

    def addresses(self) -> set[str]:
        spent = {source.address for _, source in self.inputs if source is not None}
        return spent | {output.address for _, output in self.outputs}


@dataclass(frozen=True)
class Page:
    """One page of a list, with its surroundings."""

    rows: list[Any]
    total: int
    has_more: bool
    following: Any  # the row after this page, None at the end


def page(rows: list[Any], limit: int, offset: int = 0) -> Page:
    end = offset + limit
    following = rows[end] if end < len(rows) else None
    return Page(rows[offset:end], len(rows), end < len(rows), following)


class Ledger:
    """The blocks so far: transactions, their addresses, and the unspent outputs."""

    def __init__(self, network: str, genesis: Iterable[Json] = ()) -> None:
        self.network = network
        self.clock = CLOCKS[network]
        self.tip: Json | None = None
        self.slot = 0
        self.era = "byron"
        self.transactions: dict[str, Transaction] = {}
        self.of_address: dict[str, list[Transaction]] = defaultdict(list)
        self.unspent: dict[OutputReference, Output] = {
            (made["tx"], made["index"]): Output(in_nodes_form(made["address"]), made["lovelace"], {})
            for made in genesis
        }
        self.vouchers: list[OutputReference] = []
        self.dropped: dict[OutputReference, Output] = {}
        self.dropped_at: dict[OutputReference, int] = {}

    def forward(self, block: Json) -> list[Transaction]:
        """Apply a block; returns its transactions in order."""
        self.slot, self.tip = self.slot_of(block), block
        self.enter(block["era"])
        return [self.apply(tx, block) for host in block.get("transactions", []) for tx in happened(host)]

    def enter(self, era: str) -> None:
        """The ledger state of the last block in the era of the next one.

        See cardano-ledger, Shelley/API/ByronTranslation.hs: the translation from Byron leaves out outputs of no
        lovelace, and stashes those at redeem addresses; that to Allegra deletes what is in the stash.
        """
        if self.era == "byron" != era:
            of_byron = [reference for reference, output in self.unspent.items() if is_byron(output.address)]
            self.drop(reference for reference in of_byron if not self.unspent[reference].lovelace)
            self.vouchers = [
                each for each in of_byron if each in self.unspent and is_redeem_address(self.unspent[each].address)
            ]
        if era not in ("byron", "shelley"):
            self.drop(self.vouchers)
            self.vouchers = []
        self.era = era

    def drop(self, references: Iterable[OutputReference]) -> None:
        for reference in references:
            self.dropped[reference], self.dropped_at[reference] = self.unspent.pop(reference), self.slot

    def apply(self, tx: Json, block: Json) -> Transaction:
        valid = tx.get("spends", "inputs") == "inputs"
        declared = [output_of(each, tx, index) for index, each in enumerate(tx.get("outputs", []))]
        if valid:
            spent, made = tx.get("inputs", []), list(enumerate(declared))
        else:
            spent = tx.get("collaterals", [])
            given = [tx["collateralReturn"]] if "collateralReturn" in tx else []
            made = [(len(declared), output_of(each, tx, len(declared))) for each in given]
        references = [(source["transaction"]["id"], source["index"]) for source in spent]
        referred = [self.named(tx, name) if valid else [] for name in ("references", "collaterals")]
        inputs = [(reference, self.unspent.pop(reference, None)) for reference in references]
        done = Transaction(
            tx["id"], block, self.slot, fee_of(tx, block, inputs, made), size_of(tx, block), inputs, made
        )
        if valid:
            done.mint = assets_of(tx.get("mint", {}))
            done.certificates = tx.get("certificates", [])
            done.withdrawals = {account: paid["ada"]["lovelace"] for account, paid in tx.get("withdrawals", {}).items()}
        done.metadata = tx.get("metadata", {}).get("labels", {}) if valid else {}
        done.datums, done.declared = tx.get("datums", {}), tx
        done.references, done.collaterals = referred
        self.unspent.update({(done.tx_hash, index): output for index, output in made})
        self.transactions[done.tx_hash] = done
        for address in done.addresses():
            self.of_address[address].append(done)
        return done

    def named(self, tx: Json, kind: str) -> list[tuple[OutputReference, Output | None]]:
        """The outputs that a transaction names without spending them."""
        references = [(each["transaction"]["id"], each["index"]) for each in tx.get(kind, [])]
        return [(reference, self.unspent.get(reference)) for reference in references]

    def slot_of(self, block: Json) -> int:
        """An epoch boundary block has no slot; it gets the first one of its epoch."""
        if "slot" in block:
            return int(block["slot"])
        return 0 if self.tip is None else (self.clock.epoch_of(self.slot) + 1) * self.clock.byron_epoch

    # Answers

    def last_updated(self) -> Json:
        assert self.tip is not None
        return {"slot_no": self.slot, "block_hash": self.tip["id"], "block_time": self.clock.time(self.slot)}

    def history(self, address: str, order: str = "desc", from_slot: int | None = None) -> list[Transaction]:
        """All transactions in an address' list with these filters."""
        rows = self.of_address.get(address, [])
        if order == "asc":
            return [tx for tx in rows if from_slot is None or tx.slot >= from_slot]
        return [tx for tx in reversed(rows) if from_slot is None or tx.slot <= from_slot]

    def entry(self, tx: Transaction) -> Json:
        """One row of GET /v1/tx/history/:address."""
        return {
            "tx_hash": tx.tx_hash,
            "block_hash": tx.block["id"],
            "slot_no": tx.slot,
            "block_no": tx.block["height"],
            "block_time": self.clock.time(tx.slot),
        }

    def detail(self, tx: Transaction, grouped: bool = False) -> Json:
        """One row of GET /v1/tx/address/:address, and the minimum of GET /v1/tx/hash/:hash."""
        return self.entry(tx) | {
            "fee": tx.fee,
            "size": tx.size,
            "inputs": [
                {
                    "tx_hash": reference[0],
                    "output_index": reference[1],
                    "address": None if source is None else source.address,
                    "value": None if source is None else value_of(source, grouped),
                }
                for reference, source in tx.inputs
            ],
            "outputs": [
                {"output_index": index, "address": output.address, "value": value_of(output, grouped)}
                for index, output in tx.outputs
            ],
        }

    def full(self, tx: Transaction) -> Json:
        """GET /v1/tx/hash/:hash, without its metadata and certificates."""
        interval = tx.declared.get("validityInterval", {})
        return self.detail(tx) | {
            "valid": tx.declared.get("spends", "inputs") == "inputs",
            "mint": {f"{policy}.{name}": quantity for (policy, name), quantity in tx.mint.items()},
            "withdrawals": [{"stake_address": account, "lovelace": paid} for account, paid in tx.withdrawals.items()],
            "invalid_before": interval.get("invalidBefore"),
            "invalid_hereafter": interval.get("invalidAfter"),
            "redeemer_count": redeemer_count(tx),
            "treasury_donation": donation(tx),
        }


def redeemer_count(tx: Transaction) -> int:
    """Those of a transaction with failed scripts do not count."""
    return len(tx.declared.get("redeemers", ())) if tx.declared.get("spends", "inputs") == "inputs" else 0


def donation(tx: Transaction) -> int:
    """What a transaction whose scripts did not fail gives to the treasury."""
    given = tx.declared.get("treasury", {}).get("donation") if tx.declared.get("spends", "inputs") == "inputs" else None
    return int(given["ada"]["lovelace"]) if given else 0


def happened(host: Json) -> Iterator[Json]:
    """A transaction, after its sub-transactions (Dijkstra), which do not happen if it failed."""
    if host.get("spends", "inputs") == "inputs":
        yield from host.get("subTransactions", [])
    yield host


def assets_of(value: Json) -> dict[tuple[str, str], int]:
    return {(policy, name): n for policy, names in value.items() if policy != "ada" for name, n in names.items()}


def output_of(output: Json, tx: Json, index: int) -> Output:
    value = output["value"]
    return Output(
        in_nodes_form(output["address"]),
        value["ada"]["lovelace"],
        assets_of(value),
        output.get("datum"),
        output.get("datumHash"),
        reference_script(output, tx, index),
    )


def reference_script(output: Json, tx: Json, index: int) -> Json | None:
    """The script of an output. A native one that the node sends without its bytes is that of the transaction's CBOR."""
    script: Json | None = output.get("script")
    if script is None or "cbor" in script:
        return script
    if "cbor" not in tx:
        return None
    body = cbor2.loads(bytes.fromhex(tx["cbor"]))[0]
    sent = body[1][index] if index < len(body[1]) else body[16]
    return script | {"cbor": sent[3].value.removeprefix(b"\x82\x00").hex()}


def value_of(output: Output, grouped: bool) -> Json:
    value: Json = {"lovelace": output.lovelace}
    assets: Json = {}
    for (policy, name), quantity in output.assets.items():
        if grouped:
            assets.setdefault(policy, {})[name] = quantity
        else:
            assets[f"{policy}.{name}"] = quantity
    return value | ({"assets": assets} if assets else {})


def fee_of(
    tx: Json, block: Json, inputs: list[tuple[OutputReference, Output | None]], made: list[tuple[int, Output]]
) -> int | None:
    """The declared fee. Byron declares none, and failed scripts cost the collateral.

    A sub-transaction declares none: its host pays.
    """
    valid = tx.get("spends", "inputs") == "inputs"
    if valid and block["era"] != "byron":
        return int(tx["fee"]["ada"]["lovelace"]) if "fee" in tx else 0
    known = [source.lovelace for _, source in inputs if source is not None]
    if len(known) == len(inputs):
        return sum(known) - sum(output.lovelace for _, output in made)
    return int(tx["totalCollateral"]["ada"]["lovelace"]) if "totalCollateral" in tx else None


def size_of(tx: Json, block: Json) -> int | None:
    """Bytes as the ledger counts them: without the one byte of the validity flag, from Alonzo to Conway."""
    if "cbor" not in tx:
        return None
    return len(tx["cbor"]) // 2 - (1 if block["era"] in WITH_VALIDITY_FLAG else 0)


# Text forms of bytes, by CIP-5, CIP-14 and CIP-19, through pycardano's bech32


@cache
def bech32(prefix: str, payload: bytes) -> str:
    words = convertbits(list(payload), 8, 5)
    assert words is not None
    return str(bech32_encode(prefix, words, Encoding.BECH32))


@cache
def bech32_payload(text: str) -> bytes:
    _, words, encoding = bech32_decode(text)
    assert words is not None and encoding == Encoding.BECH32, text
    payload = convertbits(words, 5, 8, False)
    assert payload is not None, text
    return bytes(payload)


def stake_address(network: str, credential: str, script: bool) -> str:
    main = network == "mainnet"
    header = (0xF0 if script else 0xE0) | main
    return bech32("stake" if main else "stake_test", bytes([header]) + bytes.fromhex(credential))


@cache
def in_nodes_form(address: str) -> str:
    """The address as nodes show it today. A pointer that does not fit 32, 16 and 16 bits is 0, 0, 0 (cardano-ledger
    `mkPtrNormalized`).
    """
    raw = bech32_payload(address) if address.startswith("addr") else b""
    if not raw or raw[0] >> 4 not in (4, 5):
        return address
    pointer = PointerAddress.decode(raw[29:])
    fits = pointer.slot < 2**32 and pointer.tx_index < 2**16 and pointer.cert_index < 2**16
    return bech32(address.rpartition("1")[0], raw[:29] + (pointer.encode() if fits else bytes(3)))


@cache
def stake_address_of(address: str) -> str | None:
    """The stake address inside a base address; Byron, enterprise and pointer addresses have none."""
    if not address.startswith("addr"):
        return None
    raw = bech32_payload(address)
    kind, main = raw[0] >> 4, raw[0] & 1
    if kind > 3:
        return None
    return stake_address("mainnet" if main else "preview", raw[29:57].hex(), script=kind >= 2)


def is_byron(address: str) -> bool:
    return not address.startswith("addr")


@cache
def is_redeem_address(address: str) -> bool:
    """Whether a Byron address has type 2 (Byron CDDL: `address`, `addrtype`)."""
    payload, _ = cbor2.loads(base58.b58decode(address))
    _, _, kind = cbor2.loads(payload.value)
    return bool(kind == 2)


def fingerprint(policy: str, name: str) -> str:
    return bech32("asset", blake2b(bytes.fromhex(policy + name), digest_size=20).digest())
