"""The answers below /blockfrost about a chain, compared with the model.

Lists are read in both orders, page by page and one page beyond the end. Paths are written as in the table of routes.
"""

import io
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from fractions import Fraction
from hashlib import blake2b
from math import ceil
from random import Random
from typing import Any, Literal, TypeVar

import cbor2
import jsonschema

from api.blockfrost.routes import FACADE
from api.blockfrost.shape import ROOT
from devnet.parameters import PROTOCOL_MAJOR
from tests import blockfrost_schemas
from tests.chain.answers import as_text, asked, check_sorted, orders, stake_of
from tests.chain.compared import same
from tests.chain.harness import Caller
from tests.chain.model import (
    Json,
    Output,
    OutputReference,
    Transaction,
    bech32,
    bech32_payload,
    donation,
    fingerprint,
    in_nodes_form,
    redeemer_count,
    stake_address,
)
from tests.chain.model_assets import AssetKey, by_hex, text_of
from tests.chain.model_attachments import Attachments
from tests.chain.model_certificates import moved_by, places_of
from tests.chain.model_chain import Chain
from tests.chain.model_owners import Owners, hash_of, script_hash

MAX_COUNT = 100
PURPOSES = {"spend": (0, "spend"), "mint": (1, "mint"), "publish": (2, "cert"), "withdraw": (3, "reward")}
DERIVATION = "/utils/addresses/xpub/{xpub}/{role}/{index}"  # of any account, whether or not the chain has it
REGISTRATIONS = ("stakeCredentialRegistration", "stakeCredentialDeregistration")
CREDENTIAL_BYTES = {"verificationKey": b"\x22", "script": b"\x23"}  # of a representative's id (CIP-129)
METADATA_PARTS: Json = dict.fromkeys(("ticker", "name", "description", "homepage"))  # of a pool, not fetched

BYRON_GENESIS = {
    "mainnet": "5f20df933584822601f9e3f8c024eb5eb252fe8cefb24d1317dc3d432e940ebb",
    "preprod": "d4b8de7a11d929a323373cbab6c1a9bdc931beffff11db111cf9d57356ee1937",
    "preview": "83de1d7302569ad56cf9139a41e2e11346d4cb4a31c00142557b6ab3fa550761",
}

Entity = TypeVar("Entity")


def paths() -> set[str]:
    """The paths that answer about a chain; that of the CBOR and those of the mempool need a submitted transaction."""
    return {
        route.path.removeprefix(ROOT)
        for route in FACADE
        if route.method == "GET" and route.scope and route.scope != "submit" and "/mempool" not in route.path
    }


class Facade:
    """The answers below /blockfrost about one chain, and those that its model gives.

    `answered` are the paths that had an answer. A node may omit the CBOR of metadata.
    """

    def __init__(self, caller: Caller, chain: Chain, *, metadata_cbor: bool = True) -> None:
        self.caller, self.chain, self.metadata_cbor = caller, chain, metadata_cbor
        self.ledger, self.owners = chain.ledger, Owners(chain.ledger)
        self.attachments = Attachments(chain.ledger)
        self.answered: set[str] = set()
        self.partial = chain.blocks.blocks[0]["height"] > 1  # block 0 of Byron is an epoch boundary
        self.lacking = set(self._lacking())
        self.active_from = self._active_from()
        self.moving = [tx for tx in chain.ledger.transactions.values() if moved_by(tx) != []]
        self.withdrawn: Counter[str] = Counter()
        for tx in self.ledger.transactions.values():
            self.withdrawn.update(tx.withdrawals)
        self.index = {tx.tx_hash: at for each in chain.blocks.transactions for at, tx in enumerate(each)}
        self.places = {block["id"]: at for at, block in enumerate(chain.blocks.blocks)}

    def _lacking(self) -> Iterator[str]:
        """What answers about this chain may lack, by the names of blockfrost_schemas.UNKNOWN."""
        if self.partial:
            yield "earlier blocks"
        if any("cbor" not in tx.declared for tx in self.ledger.transactions.values()):
            yield "transactions as CBOR"

    def _active_from(self) -> dict[tuple[str, int], int | None]:
        """The first epoch in which the parameters of each pool registration count, by transaction and place.

        A pool that is registered already changes an epoch later.
        """
        found: dict[tuple[str, int], int | None] = {}
        registered: set[str] = set()
        seen: set[str] = set()
        retiring: dict[str, int] = {}
        for tx in self.ledger.transactions.values():
            epoch = self.ledger.clock.epoch_of(tx.slot)
            registered -= {pool for pool, at in retiring.items() if at <= epoch}
            retiring = {pool: at for pool, at in retiring.items() if at > epoch}
            for at, each in enumerate(tx.certificates):
                pool = each.get("stakePool", {}).get("id", "")
                if each["type"] == "stakePoolRegistration":
                    new = None if self.partial and pool not in seen else epoch + 2
                    found[tx.tx_hash, at] = epoch + 3 if pool in registered else new
                    registered.add(pool)
                    seen.add(pool)
                    retiring.pop(pool, None)
                elif each["type"] == "stakePoolRetirement":
                    retiring[pool] = each["stakePool"]["retirementEpoch"]
        return found

    # Questions

    def one(self, path: str, expected: Any, **parts: str) -> None:
        """Check an answer that is not a list."""
        name = path.format(**parts)
        same(name, self.told(path, name), expected)

    def told(self, path: str, name: str, **query: Any) -> Any:
        """An answer with status 200, with amounts by unit."""
        status, body = self.caller.get(ROOT + name, **query)
        assert status == 200, (name, query, status, body)
        blockfrost_schemas.check(path, body, self.lacking)
        self.answered.add(path)
        return by_unit(body)

    def rows(self, path: str, length: int, order: str | None = None, **parts: str) -> list[Any]:
        """All rows of a list of `length`, in four pages or more, and nothing beyond them."""
        name = path.format(**parts)
        rows: list[Any] = []
        count = min(max(length // 3, 1), MAX_COUNT)
        for page in range(1, length // count + 3):
            query = {"count": count, "page": page} | ({} if order is None else {"order": order})
            found = self.told(path, name, **query)
            assert len(found) == max(0, min(count, length - len(rows))), (name, query, len(found), length)
            rows += found
        return rows

    def listed(self, path: str, oldest_first: Sequence[Any], **parts: str) -> None:
        """Check a list."""
        for order in orders(oldest_first):
            expected = list(oldest_first if order == "asc" else oldest_first[::-1])
            name = asked(path.format(**parts), {"order": order})
            same(name, self.rows(path, len(expected), order, **parts), expected)
        same(path.format(**parts), self.told(path, path.format(**parts)), list(oldest_first[:MAX_COUNT]))

    def in_some_order(self, path: str, expected: Sequence[Any], figure: str | None = None, **parts: str) -> None:
        """Check a list that is sorted by a figure, or in a fixed order that the model does not know."""
        name = path.format(**parts)
        upwards = self.rows(path, len(expected), "asc", **parts)
        if figure is None:
            same(f"{name}, sorted as text", sorted(upwards, key=as_text), sorted(expected, key=as_text))
        else:
            check_sorted(name, upwards, list(expected), figure, descending=False)
        same(f"{name}, downwards", self.rows(path, len(expected), "desc", **parts), upwards[::-1])

    def missing(self, path: str, **parts: str) -> None:
        """Check that an object is not found."""
        name = path.format(**parts)
        told = self.caller.get(ROOT + name)
        expected: Json = {"status_code": 404, "error": "Not Found"}
        expected["message"] = "The requested component has not been found."
        assert told == (404, expected), (name, told)

    # Their subjects

    def seconds(self, slot: int) -> int:
        return int(datetime.fromisoformat(self.ledger.clock.time(slot)).timestamp())

    def block(self, place: int) -> Json:
        known, latest = self.chain.blocks.info(place), self.chain.blocks.blocks[-1]
        fees = [tx.fee for tx in self.chain.blocks.transactions[place]]
        return {
            "time": self.seconds(known["slot_no"]),
            "height": known["block_no"],
            "hash": known["block_hash"],
            "slot": known["slot_no"],
            "epoch": known["epoch_no"],
            "epoch_slot": known["epoch_slot"],
            "slot_leader": self.slot_leader(place),
            "size": known["size"],
            "tx_count": known["tx_count"],
            "output": known["output"] if fees else None,
            "fees": None if None in fees or not fees else known["fees"],
            "previous_block": known["previous_block"],
            "next_block": known["next_block"],
            "confirmations": latest["height"] - known["block_no"],
        } | self.header(place)

    def header(self, place: int) -> Json:
        """What is read from the node."""
        found: Json = dict.fromkeys(("block_vrf", "op_cert", "op_cert_counter"))
        if not self.follows(place):
            return found
        block = self.chain.blocks.blocks[place]
        if block["type"] == "praos":
            certificate = block["issuer"]["operationalCertificate"]
            found["block_vrf"] = bech32("vrf_vk", bytes.fromhex(block["issuer"]["vrfVerificationKey"]))
            found["op_cert"] = certificate["kes"]["verificationKey"]
            found["op_cert_counter"] = str(certificate["count"])
        return found

    def slot_leader(self, place: int) -> str:
        """The pool, or what cardano-db-sync calls those that are none, by its `mkSlotLeader`, without "Key"."""
        blocks = self.chain.blocks
        if blocks.blocks[place]["era"] == "byron":
            key = bytes.fromhex(blocks.blocks[place]["issuer"]["verificationKey"])[:32]
            return f"ByronGenesis-{blake2b(key, digest_size=32).hexdigest()[:16]}"
        pool = blocks.issuer(place)
        registered = self.partial or pool in self.chain.pools.parameters
        return pool if registered else f"ShelleyGenesis-{bech32_payload(pool).hex()[:16]}"

    def follows(self, place: int) -> bool:
        """Whether the node can be asked for a block: the index must know what precedes it."""
        return place > 0 or self.chain.blocks.blocks[0]["height"] <= 1

    def check_block(self, place: int) -> None:
        """Check a block by its hash, number and slots, its neighbours, its transactions and its addresses."""
        block, last = self.chain.blocks.blocks[place], len(self.chain.blocks.blocks) - 1
        for name in (block["id"], str(block["height"]), *(["latest"] if place == last else [])):
            self.one("/blocks/{block}", self.block(place), block=name)
        known = self.block(place)
        self.one("/blocks/slot/{slot_number}", known, slot_number=str(known["slot"]))
        in_epoch = {"epoch_number": str(known["epoch"]), "slot_number": str(known["epoch_slot"])}
        self.one("/blocks/epoch/{epoch_number}/slot/{slot_number}", known, **in_epoch)
        for page in (1, 2):
            query: Json = {"count": 3, "page": page}
            after = range(place + 1, last + 1)[3 * page - 3 : 3 * page]
            before = range(place)[max(place - 3 * page, 0) : max(place - 3 * page + 3, 0)]
            for kind, places in (("next", after), ("previous", before)):
                question = f"/blocks/{name}/{kind}"
                found = self.told(f"/blocks/{{block}}/{kind}", question, **query)
                same(asked(question, query), found, [self.block(at) for at in places])
        self.listed("/blocks/{block}/txs", [tx.tx_hash for tx in self.chain.blocks.transactions[place]], block=name)
        self.check_bytes(place)
        path, moved = "/blocks/{block}/addresses", self.moved(place)
        same(path.format(block=name), self.rows(path, len(moved), block=name), moved)

    def moved(self, place: int) -> list[Json]:
        """The addresses from which the transactions of a block spend, and to which they pay."""
        found: dict[str, list[Json]] = {}
        for tx in self.chain.blocks.transactions[place]:
            sources = [source for _, source in tx.inputs if source is not None]
            for address in dict.fromkeys(output.address for output in [*sources, *(paid for _, paid in tx.outputs)]):
                found.setdefault(address, []).append({"tx_hash": tx.tx_hash})
        return [{"address": address, "transactions": found[address]} for address in sorted(found)]

    def epoch(self, epoch: int) -> Json:
        known = self.chain.blocks.epoch(epoch)
        active = sum(self.chain.pools.snapshots.get(epoch - 1, {}).values())
        return {
            "epoch": epoch,
            "start_time": unix(known["start_time"]),
            "end_time": unix(known["end_time"]),
            "first_block_time": unix(known["first_block"]["block_time"]),
            "last_block_time": unix(known["last_block"]["block_time"]),
            "block_count": known["block_count"],
            "tx_count": known["tx_count"],
            "output": known["output"],
            "fees": known["fees"],
            "active_stake": str(active) if active else None,
        }

    def has_bytes(self, place: int) -> bool:
        """Whether the bytes of a block can be read: the node must send them, if it has any."""
        transactions = self.chain.blocks.transactions[place]
        return not transactions or (self.follows(place) and all("cbor" in tx.declared for tx in transactions))

    def check_bytes(self, place: int) -> None:
        """Check the CBOR of a block's transactions."""
        block, transactions = self.chain.blocks.blocks[place]["id"], self.chain.blocks.transactions[place]
        if not self.has_bytes(place):
            status, body = self.caller.get(f"{ROOT}/blocks/{block}/txs/cbor")
            assert status == 503, (block, status, body)
            return
        whole = [{"tx_hash": tx.tx_hash, "cbor": tx.declared["cbor"]} for tx in transactions]
        self.listed("/blocks/{block}/txs/cbor", whole, block=block)
        for each in whole[:1]:
            same("CBOR", self.caller.ok(f"/v1/tx/hash/{each['tx_hash']}/cbor")["data"], each)

    def check_epoch(self, epoch: int) -> None:
        """Check an epoch by its number, its neighbours and its blocks."""
        blocks = self.chain.blocks
        latest = epoch == max(blocks.of_epoch)
        for name in (str(epoch), *(["latest"] if latest else [])):
            self.one("/epochs/{epoch}", self.epoch(epoch), epoch=name)
        for page in (1, 2):
            query: Json = {"count": 2, "page": page}
            for kind, first in (("next", epoch + 2 * page - 1), ("previous", epoch - 2 * page)):
                question = f"/epochs/{name}/{kind}"
                expected = [self.epoch(each) for each in (first, first + 1) if each in blocks.of_epoch]
                same(asked(question, query), self.told(f"/epochs/{{epoch}}/{kind}", question, **query), expected)
        hashes = [blocks.blocks[place]["id"] for place in blocks.of_epoch[epoch]]
        self.listed("/epochs/{epoch}/blocks", hashes, epoch=name)

    def eras(self, security_parameter: int) -> list[Json]:
        """The eras of a chain from the origin: each begins with the epoch of its first block or of a later era's."""
        clock, blocks, names = self.ledger.clock, self.chain.blocks, list(PROTOCOL_MAJOR)
        epochs: dict[str, int] = {}
        for block, slot in zip(blocks.blocks, blocks.slots, strict=True):
            epochs.setdefault(block["era"], clock.epoch_of(slot))
        names = names[: names.index(blocks.blocks[-1]["era"]) + 1]
        bounds = [0, *(min(epochs[later] for later in names[at:] if later in epochs) for at in range(1, len(names)))]
        safe_zone, tip = 60 * security_parameter, blocks.slots[-1]
        present = clock.epoch_of(tip)
        last = present + 1 if clock.first_slot(present + 1) - tip > safe_zone else present + 2
        bounds.append(last if len(names) > 1 else clock.byron_slots // clock.byron_epoch)
        parameters = [(10 * security_parameter, 20, 2 * security_parameter)] + [(clock.epoch, 1, safe_zone)] * len(
            names
        )
        shown = [
            {"time": self.seconds(slot) - self.seconds(0), "slot": slot, "epoch": epoch}
            for epoch, slot in zip(bounds, map(clock.first_slot, bounds), strict=True)
        ]
        return [
            {"start": start, "end": end}
            | {"parameters": dict(zip(("epoch_length", "slot_length", "safe_zone"), each, strict=True))}
            for start, end, each in zip(shown, shown[1:], parameters, strict=False)
        ]

    def check_transaction(self, tx: Transaction) -> None:
        """Check a transaction, its inputs and outputs, metadata, withdrawals and certificates."""
        path, valid = "/txs/{hash}", tx.declared.get("spends", "inputs") == "inputs"
        kinds = [each["type"] for each in tx.certificates]
        interval, moved = tx.declared.get("validityInterval", {}), moved_by(tx)
        delegations = [each for each in tx.certificates if each["type"] == "stakeDelegation" and "stakePool" in each]
        self.one(
            path,
            {
                "hash": tx.tx_hash,
                "block": tx.block["id"],
                "block_height": tx.block["height"],
                "block_time": self.seconds(tx.slot),
                "slot": tx.slot,
                "index": self.index[tx.tx_hash],
                "output_amount": total(output for _, output in tx.outputs),
                "fees": text(tx.fee),
                "deposit": text(deposit(tx, valid)),
                "size": self.size(tx),
                "invalid_before": text(interval.get("invalidBefore")),
                "invalid_hereafter": text(interval.get("invalidAfter")),
                "utxo_count": len(tx.inputs) + len(tx.outputs),
                "withdrawal_count": len(tx.withdrawals),
                "delegation_count": len(delegations),
                "stake_cert_count": sum(kind in REGISTRATIONS for kind in kinds),
                "pool_update_count": kinds.count("stakePoolRegistration"),
                "pool_retire_count": kinds.count("stakePoolRetirement"),
                "asset_mint_or_burn_count": len(tx.mint),
                "redeemer_count": redeemer_count(tx),
                "valid_contract": valid,
                "treasury_donation": str(donation(tx)),
                "mir_cert_count": None if moved is None else len({pot for _, pot, paid in moved if paid}),
            },
            hash=tx.tx_hash,
        )
        sides = {
            "hash": tx.tx_hash,
            "inputs": [
                *(self.input(*each) | {"reference": True} for each in tx.references),
                *(self.input(*each) for each in tx.inputs),
                *(self.collateral(*each) for each in tx.collaterals),
            ],
            "outputs": [self.output(tx, index, output) for index, output in tx.outputs] + self.returned(tx),
        }
        self.one(f"{path}/utxos", sides, hash=tx.tx_hash)
        withdrawn = [{"address": account, "amount": str(paid)} for account, paid in tx.withdrawals.items()]
        self.one(f"{path}/withdrawals", withdrawn, hash=tx.tx_hash)
        self.check_metadata(tx)
        self.check_certificates(tx)
        self.check_scripts(tx)

    def size(self, tx: Transaction) -> int | None:
        """In Byron's slots the bytes without the witnesses, as cardano-db-sync counts them: `Era/Byron/Insert.hs`."""
        if tx.slot >= self.ledger.clock.byron_slots or "cbor" not in tx.declared:
            return tx.size
        file = io.BytesIO(bytes.fromhex(tx.declared["cbor"])[1:])
        cbor2.CBORDecoder(file).decode()
        return file.tell()

    def input(self, reference: OutputReference, source: Output | None) -> Json:
        known = {"tx_hash": reference[0], "output_index": reference[1], "collateral": False, "reference": False}
        if source is None:
            return known | dict.fromkeys(("address", "amount", *carried(None)))
        return known | {"address": source.address, "amount": total([source])} | carried(source)

    def collateral(self, reference: OutputReference, source: Output | None) -> Json:
        """Without assets and reference script, as in txs_hash_utxos_1.sql of blockfrost-backend-ryo."""
        shown = self.input(reference, source) | {"collateral": True, "reference_script_hash": None}
        return shown if source is None else shown | {"amount": {"lovelace": str(source.lovelace)}}

    def returned(self, tx: Transaction) -> list[Json]:
        """The collateral return of a transaction whose scripts did not fail, if it has collateral."""
        change = tx.declared.get("collateralReturn") if tx.collaterals else None
        if change is None:
            return []
        shown: Json = {"address": in_nodes_form(change["address"]), "amount": {"lovelace": lovelace_in(change)}}
        shown |= {"output_index": len(tx.outputs), "collateral": True, "consumed_by_tx": None}
        return [shown | carried(None)]

    def output(self, tx: Transaction, index: int, output: Output) -> Json:
        spender = self.owners.spent_by.get((tx.tx_hash, index))
        return {
            "address": output.address,
            "amount": total([output]),
            "output_index": index,
            "collateral": False,
            "consumed_by_tx": None if spender is None else spender.tx_hash,
        } | carried(output)

    def check_metadata(self, tx: Transaction) -> None:
        shown = tx.metadata if tx.declared.get("spends", "inputs") == "inputs" else {}
        shown = dict(sorted(shown.items(), key=lambda item: int(item[0])))
        path, cbors = "/txs/{hash}/metadata", {label: sent.get("cbor") for label, sent in shown.items()}
        if not self.metadata_cbor:
            cbors = dict.fromkeys(cbors)
        as_json = [{"label": label, "json_metadata": plain_of(sent)} for label, sent in shown.items()]
        name = path.format(hash=tx.tx_hash)
        same(name, self.told(path, name), as_json)
        for told in self.told(f"{path}/cbor", f"{name}/cbor"):
            cbor, whole = cbors.pop(told["label"]), told["metadata"]
            if whole is not None:
                same(name, cbor2.loads(bytes.fromhex(whole)), {int(told["label"]): cbor2.loads(bytes.fromhex(cbor))})
            assert (whole is None) == (cbor is None), (name, told)
            same(name, told["cbor_metadata"], None if whole is None else f"\\x{whole}")
        assert not cbors, (name, cbors)

    def check_scripts(self, tx: Transaction) -> None:
        """Check what is read from the transaction's bytes: redeemers, with their scripts and fees, and signers."""
        if not self.has_bytes(self.places[tx.block["id"]]):
            return
        path, valid = "/txs/{hash}", tx.declared.get("spends", "inputs") == "inputs"
        signers = sorted(tx.declared.get("requiredExtraSignatories", ())) if valid else []
        self.one(f"{path}/required_signers", [{"witness_hash": each} for each in signers], hash=tx.tx_hash)
        redeemers = tx.declared.get("redeemers", ()) if valid else ()
        prices = self.prices()
        if redeemers and prices is None:
            status, body = self.caller.get(f"{ROOT}/txs/{tx.tx_hash}/redeemers")
            assert status == 503, (tx.tx_hash, status, body)
            return
        expected = []
        for each in sorted(
            redeemers, key=lambda each: (each["validator"]["index"], PURPOSES[each["validator"]["purpose"]][0])
        ):
            (_, purpose), index, units = (
                PURPOSES[each["validator"]["purpose"]],
                each["validator"]["index"],
                each["executionUnits"],
            )
            data_hash = hash_of(each["redeemer"])
            assert prices is not None, "there are redeemers"
            expected.append(
                {
                    "tx_index": index,
                    "purpose": purpose,
                    "script_hash": self.pointed(tx, purpose, index),
                    "redeemer_data_hash": data_hash,
                    "datum_hash": data_hash,
                    "unit_mem": str(units["memory"]),
                    "unit_steps": str(units["cpu"]),
                    "fee": str(ceil(units["memory"] * prices[0] + units["cpu"] * prices[1])),
                }
            )
        self.one(f"{path}/redeemers", expected, hash=tx.tx_hash)

    def prices(self) -> tuple[Fraction, Fraction] | None:
        """The prices of memory and steps; None if the node has told no parameters, or has none of them."""
        status, body = self.caller.get("/v1/epochs/latest/parameters")
        found = body["data"]["ogmios"].get("scriptExecutionPrices") if status == 200 else None
        return None if found is None else (Fraction(found["memory"]), Fraction(found["cpu"]))

    def pointed(self, tx: Transaction, purpose: str, index: int) -> str | None:
        """The script that a redeemer is for. Its index counts in the ledger's order, in which scripts precede keys."""
        match purpose:
            case "spend":
                declared = sorted((each["transaction"]["id"], each["index"]) for each in tx.declared["inputs"])
                source = dict(tx.inputs)[declared[index]]
                return None if source is None else script_of(source.address)
            case "mint":
                return str(sorted(tx.declared["mint"])[index])
            case "reward":
                accounts = sorted(
                    map(bech32_payload, tx.declared["withdrawals"]), key=lambda raw: (not raw[0] & 0x10, raw)
                )
                return accounts[index][1:].hex() if accounts[index][0] & 0x10 else None
        raise AssertionError(f"no chain has a redeemer for {purpose}")

    def check_certificates(self, tx: Transaction) -> None:
        path, epoch = "/txs/{hash}", self.ledger.clock.epoch_of(tx.slot)
        stakes, delegations, updates, ends = [], [], [], []
        places = places_of(tx.declared) if tx.certificates else []  # failed scripts have none of those declared
        for nth, (at, each) in enumerate(zip(places, tx.certificates, strict=True)):
            kind, pool = each["type"], each.get("stakePool", {})
            if kind in REGISTRATIONS:
                address = self.chain.pools.account(each)
                stakes.append({"cert_index": at, "address": address, "registration": kind == REGISTRATIONS[0]})
            elif kind == "stakeDelegation" and pool:
                delegation = {"address": self.chain.pools.account(each), "pool_id": pool["id"]}
                delegations.append({"index": at, "cert_index": at, "active_epoch": epoch + 2} | delegation)
            elif kind == "stakePoolRegistration":
                active_from = self.active_from[tx.tx_hash, nth]
                updates.append({"cert_index": at, "active_epoch": active_from} | self.registered(pool))
            elif kind == "stakePoolRetirement":
                ends.append({"cert_index": at, "pool_id": pool["id"], "retiring_epoch": pool["retirementEpoch"]})
        self.one(f"{path}/stakes", stakes, hash=tx.tx_hash)
        self.one(f"{path}/delegations", delegations, hash=tx.tx_hash)
        self.one(f"{path}/pool_updates", updates, hash=tx.tx_hash)
        self.one(f"{path}/pool_retires", ends, hash=tx.tx_hash)
        self.check_moved(tx)

    def check_moved(self, tx: Transaction) -> None:
        """Check the instantaneous rewards of a transaction."""
        path, moved = "/txs/{hash}/mirs", moved_by(tx)
        if moved is None:
            status, body = self.caller.get(ROOT + path.format(hash=tx.tx_hash))
            assert status == 503 and "--include-transaction-cbor" in body["message"], (tx.tx_hash, status, body)
            return
        expected = [
            {"pot": pot, "cert_index": at, "address": self.account_of(credential), "amount": str(lovelace)}
            for at, pot, paid in moved
            for credential, lovelace in paid.items()
        ]
        self.one(path, expected, hash=tx.tx_hash)

    def account_of(self, credential: tuple[int, bytes]) -> str:
        origin, digest = credential
        return stake_address(self.ledger.network, digest.hex(), script=origin == 1)

    def moved_to(self, account: str) -> list[tuple[Transaction, str, int]]:
        """The instantaneous rewards of an account, with their pots."""
        return [
            (tx, pot, lovelace)
            for tx in self.moving
            for _, pot, paid in moved_by(tx) or ()
            for credential, lovelace in paid.items()
            if self.account_of(credential) == account
        ]

    def registered(self, pool: Json) -> Json:
        """A pool as a certificate registers it."""
        return {
            "pool_id": pool["id"],
            "vrf_key": pool["vrfVerificationKeyHash"],
            "pledge": str(pool["pledge"]["ada"]["lovelace"]),
            "margin_cost": float(Fraction(pool["margin"])),
            "fixed_cost": str(pool["cost"]["ada"]["lovelace"]),
            "reward_account": pool["rewardAccount"],
            "owners": [stake_address(self.ledger.network, owner, script=False) for owner in pool["owners"]],
            "metadata": metadata_place(pool),
            "relays": [*map(relay, pool["relays"])],
        }

    def unspent(self, owner: str, asset: AssetKey | Literal["lovelace"] | None = None) -> list[Json]:
        """The unspent outputs, those with an asset or, for `lovelace`, those without any."""
        return [
            {
                "address": output.address,
                "tx_hash": reference[0],
                "tx_index": reference[1],
                "output_index": reference[1],
                "amount": total([output]),
                "block": self.ledger.transactions[reference[0]].block["id"]
                if reference[0] in self.ledger.transactions
                else genesis_block(output.address, self.ledger.network),
            }
            | carried(output)
            for reference, output in self.owners.outputs.get(owner, [])
            if asset is None or (asset in output.assets if asset != "lovelace" else not output.assets)
        ]

    def place(self, tx: Transaction) -> Json:
        return {
            "tx_hash": tx.tx_hash,
            "tx_index": self.index[tx.tx_hash],
            "block_height": tx.block["height"],
            "block_time": self.seconds(tx.slot),
        }

    def check_address(self, address: str, random: Random) -> None:
        """Check what an address holds and moved, its outputs, also with some of its assets, and its transactions."""
        path, known = "/addresses/{address}", self.owners.address(address)
        payment = known["payment_credential"]
        expected = {
            "address": address,
            "amount": {"lovelace": str(known["lovelace"])} | units(self.owners.held(address)),
            "stake_address": known["stake_address"],
            "type": "byron" if known["kind"] == "byron" else "shelley",
            "script": payment is not None and payment["origin"] == "script",
        }
        self.one(path, expected, address=address)
        self.one(f"{path}/total", {"address": address} | self.moved_by(address), address=address)
        self.check_owned(address, address, random)

    def check_credential(self, credential: str, random: Random) -> None:
        """Check the same for a payment credential, in one of its forms."""
        path, known = "/addresses/{address}", self.owners.payment_credential(credential)
        form = random.choice((credential, bech32("script", bech32_payload(credential))))
        expected = {
            "address": form,
            "amount": {"lovelace": str(known["lovelace"])} | units(self.owners.held(credential)),
            "stake_address": None,
            "type": "shelley",
            "script": known["origin"] == "script",
        }
        self.one(path, expected, address=form)
        self.one(f"{path}/total", {"address": form} | self.moved_by(credential), address=form)
        self.check_owned(credential, form, random)

    def check_owned(self, owner: str, address: str, random: Random) -> None:
        """Check the outputs and transactions of an owner, given its form in the question."""
        path = "/addresses/{address}"
        self.listed(f"{path}/utxos", self.unspent(owner), address=address)
        self.listed(f"{path}/utxos/{{asset}}", self.unspent(owner, "lovelace"), address=address, asset="lovelace")
        for asset in some(random, 2, self.owners.held(owner)):
            name = "".join(asset)
            self.listed(f"{path}/utxos/{{asset}}", self.unspent(owner, asset), address=address, asset=name)
        transactions = self.owners.transactions.get(owner, [])
        places = [self.place(tx) for tx in transactions]
        self.listed(f"{path}/transactions", places, address=address)
        self.listed(f"{path}/txs", [tx.tx_hash for tx in transactions], address=address)
        if places:
            self.check_range(f"{path}/transactions", places, random, address=address)

    def check_range(self, path: str, places: list[Json], random: Random, **parts: str) -> None:
        """Check the transactions between two of them, and those of the blocks between."""

        def at(place: Json) -> tuple[int, int]:
            return place["block_height"], place["tx_index"]

        low, high = sorted(random.choices(places, k=2), key=at)
        limits = {
            f"{low['block_height']}:{low['tx_index']}": [each for each in places if at(each) >= at(low)],
            str(low["block_height"]): [each for each in places if each["block_height"] >= low["block_height"]],
        }
        until = {
            f"{high['block_height']}:{high['tx_index']}": [each for each in places if at(each) <= at(high)],
            str(high["block_height"]): [each for each in places if each["block_height"] <= high["block_height"]],
        }
        for start, rest in limits.items():
            for end, beginning in until.items():
                expected, name = [each for each in rest if each in beginning], path.format(**parts)
                for order in ("asc", "desc"):
                    query = {"from": start, "to": end, "order": order}
                    listed = expected if order == "asc" else expected[::-1]
                    same(asked(name, query), self.told(path, name, **query), listed[:MAX_COUNT])
                second: Json = {"from": start, "to": end, "count": 2, "page": 2}
                same(asked(name, second), self.told(path, name, **second), expected[2:4])

    def moved_by(self, owner: str) -> Json:
        """What an owner has received and sent, as in addresses_address_total.sql of blockfrost-backend-ryo.

        In cardano-db-sync each output of the genesis has a transaction.
        """
        known = self.owners.totals(owner)
        received, sent = {"lovelace": known["received_lovelace"]}, {"lovelace": known["sent_lovelace"]}
        for each in known["assets"]:
            unit = each["policy_id"] + each["asset_name"]
            received[unit] = each["received"]
            if each["sent"] != "0":
                sent[unit] = each["sent"]
        count = known["transaction_count"] + self.owners.genesis_outputs(owner)
        return {"received_sum": received, "sent_sum": sent, "tx_count": count}

    def accounts(self) -> list[str]:
        """Every account of an address, a certificate, a withdrawal or an instantaneous reward."""
        found = dict.fromkeys([*self.owners.addresses, *self.withdrawn])
        for tx in self.moving:
            found |= {self.account_of(each): None for _, _, paid in moved_by(tx) or () for each in paid}
        for tx in self.ledger.transactions.values():
            found |= dict.fromkeys(self.chain.pools.account(each) for each in tx.certificates if "credential" in each)
        return sorted(found)

    def check_account(self, account: str) -> None:
        """Check an account, its addresses, assets, totals, outputs, delegations and withdrawals."""
        path, pools, summary = "/accounts/{stake_address}", self.chain.pools, self.owners.summary(account)
        pool, withdrawn = self.pool_of(account), self.withdrawn.get(account, 0)
        told = self.told(path, path.format(stake_address=account))
        # Without certificates it is unknown before the first indexed block.
        registered = account in pools.registered or (None if told["registered"] is None else False)
        expected = {
            "stake_address": account,
            "active": pool is not None,
            "registered": registered,
            "active_epoch": self.registered_in(account),
            "controlled_amount": str(summary["lovelace"]),
            "withdrawable_amount": "0",
            "pool_id": pool,
            "drep_id": representative(pools.votes.representatives.get(account)),
        }
        moved = self.moved_to(account)
        for name, pot in (("reserves_sum", "reserve"), ("treasury_sum", "treasury")):
            expected[name] = None if self.partial else str(sum(paid for _, each, paid in moved if each == pot))
        expected |= dict.fromkeys(("rewards_sum", "withdrawals_sum"), None if self.partial else str(withdrawn))
        same(path.format(stake_address=account), told, expected)
        addresses = [{"address": address} for address in self.owners.addresses.get(account, [])]
        self.listed(f"{path}/addresses", addresses, stake_address=account)
        held, name = units(self.owners.held(account)), f"{path}/addresses/assets"
        for order in ("asc", "desc"):
            expected_order = [{"unit": unit, "quantity": held[unit]} for unit in self.held_in_order(account, order)]
            same(
                asked(name, {"order": order}), self.rows(name, len(held), order, stake_address=account), expected_order
            )
        totals = {"stake_address": account} | self.moved_by(account)
        self.one(f"{path}/addresses/total", totals, stake_address=account)
        self.listed(f"{path}/utxos", self.unspent(account), stake_address=account)
        delegations = [
            {"active_epoch": each["active_epoch_no"], "pool_id": each["pool_id"], "amount": out_sum(tx)}
            | self.position(tx)
            for each in pools.delegated.get(account, [])
            for tx in [self.ledger.transactions[each["transaction"]["tx_hash"]]]
        ]
        self.listed(f"{path}/delegations", delegations, stake_address=account)
        self.check_account_history(account)
        self.check_rewards(account)
        self.check_stake_history(account)
        withdrawals = [
            {"amount": str(tx.withdrawals[account])} | self.position(tx)
            for tx in self.ledger.transactions.values()
            if account in tx.withdrawals
        ]
        self.listed(f"{path}/withdrawals", withdrawals, stake_address=account)
        rewards = [{"amount": str(paid)} | self.position(tx) for tx, _, paid in moved]
        self.listed(f"{path}/mirs", rewards, stake_address=account)

    def check_account_history(self, account: str) -> None:
        """Check the transactions of an account with its addresses in each, and its registrations."""
        path = "/accounts/{stake_address}"
        entries = [
            {"address": address} | self.place(tx)
            for tx in self.owners.transactions.get(account, [])
            for address in self.owners.addresses[account]
            if any(tx is other for other in self.ledger.of_address.get(address, []))
        ]
        self.listed(f"{path}/transactions", entries, stake_address=account)
        if entries:
            self.check_range(f"{path}/transactions", entries, Random(account), stake_address=account)
        registrations = [
            {"action": "registered" if is_registration else "deregistered", "deposit": None}
            | self.position(tx)
            | ({"deposit": self.stake_deposit(each)} if is_registration else {})
            for tx in self.ledger.transactions.values()
            for each in tx.certificates
            if each["type"] in REGISTRATIONS and self.chain.pools.account(each) == account
            for is_registration in [each["type"] == REGISTRATIONS[0]]
        ]
        self.listed(f"{path}/registrations", registrations, stake_address=account)

    def known_epochs(self, path: str) -> list[int]:
        """The epochs that the header of an answer names."""
        ranges = self.caller.text(ROOT + path)[0]["Known-Epochs"]
        bounds = [[int(bound) for bound in each.split("-")] for each in ranges.split(",")] if ranges != "none" else []
        return [epoch for first, last in bounds for epoch in range(first, last + 1)]

    def stake_in(self, epoch: int, pool: str, account: str) -> str:
        """The stake of an account in an epoch: its outputs and, as the nodes of these tests tell no rewards, what it
        withdrew in the epoch that began with the snapshot, less the deposits that were returned to it just after.
        """
        pools, clock = self.chain.pools, self.ledger.clock
        moved = sum(
            tx.withdrawals.get(account, 0)
            - tx.declared.get("credits", {}).get(account, {"ada": {"lovelace": 0}})["ada"]["lovelace"]
            for tx in self.ledger.transactions.values()
            if clock.epoch_of(tx.slot) == epoch - 1
        )
        returned = sum(at == epoch - 1 for at, _ in pools.returned.get(account, []))
        return str(pools.members[epoch - 1][pool][account] + moved - 500_000_000 * returned)

    def check_stakes(self) -> None:
        """Check the stakes of epochs whose snapshot was taken live, once their rewards are read; others are refused."""
        account = next(iter(self.accounts()), None)
        if account is None:  # as in Byron
            assert not any(self.chain.pools.members.values())
            return
        known = self.known_epochs(f"/accounts/{account}/history")
        for path in ("/epochs/{epoch}/stakes", "/epochs/{epoch}/stakes/{pool}"):
            for epoch in self.chain.blocks.of_epoch:
                members = self.chain.pools.members.get(epoch - 1, {})
                for pool in list(members)[:3]:
                    name = path.format(epoch=epoch, pool=pool)
                    status, body = self.caller.get(ROOT + name)
                    assert status == (200 if epoch in known else 501), (name, status, body)
                    if epoch in known:
                        expected = [
                            {"stake_address": who, "amount": self.stake_in(epoch, of, who)}
                            | ({} if "{pool}" in path else {"pool_id": of})
                            for of in ([pool] if "{pool}" in path else members)
                            for who in members[of]
                        ]
                        told = self.rows(path, len(expected), epoch=str(epoch), pool=pool)
                        same(name, sorted(told, key=as_text), sorted(expected, key=as_text))
            self.answered.add(path)

    def check_pool_history(self, pool: str) -> None:
        path = "/pools/{pool}/history"
        known = self.known_epochs(path.format(pool=pool))
        assert {each["epoch"] for each in self.told(path, path.format(pool=pool))} <= {*known}

    def check_stake_history(self, account: str) -> None:
        path = "/accounts/{stake_address}/history"
        name = path.format(stake_address=account)
        expected = [
            {"active_epoch": epoch, "amount": self.stake_in(epoch, pool, account), "pool_id": pool}
            for epoch in self.known_epochs(name)
            for pool, members in self.chain.pools.members[epoch - 1].items()
            if account in members
        ]
        self.listed(path, expected, stake_address=account)

    def check_rewards(self, account: str) -> None:
        """Check the rewards of an account, of which only the deposits of its pools are known by history."""
        path = "/accounts/{stake_address}/rewards"
        told = self.told(path, path.format(stake_address=account))
        returned = [each for each in told if each["type"] == "pool_deposit_refund"]
        same(
            path.format(stake_address=account),
            sorted(returned, key=as_text),
            sorted(
                (
                    {"epoch": epoch, "amount": "500000000", "pool_id": pool, "type": "pool_deposit_refund"}
                    for epoch, pool in self.chain.pools.returned.get(account, [])
                ),
                key=as_text,
            ),
        )

    def stake_deposit(self, certificate: Json) -> str:
        return str(certificate["deposit"]["ada"]["lovelace"]) if "deposit" in certificate else "2000000"

    def held_in_order(self, account: str, order: str) -> list[str]:
        """The units that an account holds, by the first or the last output with each, then by unit."""
        outputs = [output for _, output in self.owners.outputs.get(account, [])]
        in_order = outputs if order == "asc" else outputs[::-1]
        return list(dict.fromkeys(unit for output in in_order for unit in sorted(map("".join, output.assets))))

    def registered_in(self, account: str) -> int | None:
        """The epoch of the last registration or deregistration: `active_epoch` in accounts_stake_address.sql of
        blockfrost-backend-ryo.
        """
        slots = [
            tx.slot
            for tx in self.ledger.transactions.values()
            for each in tx.certificates
            if each["type"] in REGISTRATIONS and self.chain.pools.account(each) == account
        ]
        return self.ledger.clock.epoch_of(slots[-1]) if slots else None

    def pool_of(self, account: str) -> str | None:
        """The pool of the last delegation since the account was registered, as in accounts_stake_address.sql."""
        pool: str | None = None
        for tx in self.ledger.transactions.values():
            for each in tx.certificates:
                if "credential" in each and self.chain.pools.account(each) == account:
                    if each["type"] in REGISTRATIONS:
                        pool = None
                    elif each["type"] == "stakeDelegation":
                        pool = each.get("stakePool", {}).get("id", pool)
        return pool

    def traits_of_address(self, address: str) -> Iterator[object]:
        yield bech32_payload(address)[0] if address.startswith("addr") else "byron"
        yield "assets", bool(self.owners.held(address))
        yield "unspent", bool(self.owners.outputs.get(address))

    def traits_of_credential(self, credential: str) -> Iterator[object]:
        transactions = self.owners.transactions.get(credential, [])
        yield "shared", transactions != self.owners.transactions.get(self.owners.first_address[credential], [])
        yield "unspent", bool(self.owners.outputs.get(credential))

    def traits_of_account(self, account: str) -> Iterator[object]:
        pools, used = self.chain.pools, bool(self.owners.transactions.get(account))
        yield "registered", account in pools.registered, used
        delegations, since = pools.delegated.get(account, []), self.registered_in(account)
        yield "delegations", bool(delegations), account in pools.delegations
        yield "other epoch", bool(delegations) and since not in (None, delegations[-1]["active_epoch_no"])
        yield "representative", pools.votes.representatives.get(account, {}).get("type")
        yield "withdrawals", account in self.withdrawn, used
        yield "deposits", bool(pools.returned.get(account))
        yield "addresses", min(len(self.owners.addresses.get(account, [])), 3)
        yield "moved", frozenset(pot for _, pot, _ in self.moved_to(account)), account in pools.registered

    def traits_of_asset(self, asset: AssetKey) -> Iterator[object]:
        minted = self.chain.assets.minted.get(asset, [])
        yield "described", asset in self.chain.assets.cip25
        yield "label", asset[1][:8] if asset[1].startswith(("000", "001")) else None
        yield "burned", any(quantity < 0 for _, quantity in minted), sum(quantity for _, quantity in minted) > 0

    def traits_of_pool(self, pool: str) -> Iterator[object]:
        known = self.chain.pools.parameters[pool]
        yield "status", self.chain.pools.status(pool)
        yield "metadata", bool(known.get("metadata"))
        yield from (("relay", *sorted(each)) for each in known["relays"])

    def position(self, tx: Transaction) -> Json:
        return {
            "tx_hash": tx.tx_hash,
            "tx_slot": tx.slot,
            "block_time": self.seconds(tx.slot),
            "block_height": tx.block["height"],
        }

    def check_asset(self, asset: AssetKey, holders: list[Json], random: Random) -> None:
        """Check an asset, its holders, mints and transactions."""
        path, unit, assets = "/assets/{asset}", "".join(asset), self.chain.assets
        known, minted = assets.info(asset), assets.minted.get(asset, [])
        by_datum = cip68_of(assets.reference_datum(asset), asset[1][:8])
        metadata, standard, extra = by_datum or (*cip25_of(asset, minted), None)
        expected = {
            "asset": unit,
            "policy_id": asset[0],
            "asset_name": asset[1] or None,
            "fingerprint": fingerprint(*asset),
            "quantity": known["total_supply"],
            "initial_mint_tx_hash": known["first_mint_tx"],
            "mint_or_burn_count": len(minted),
            "onchain_metadata": metadata,
            "onchain_metadata_standard": standard,
            "metadata": None,
        }
        told = self.told(path, path.format(asset=unit))
        if by_datum:
            told["onchain_metadata"] = decoded(told["onchain_metadata"], asset[1][:8])
        same(path.format(asset=unit), without(told, "onchain_metadata_extra"), expected)
        told_extra = told["onchain_metadata_extra"]
        same(f"{path.format(asset=unit)}, extra", told_extra and cbor2.loads(bytes.fromhex(told_extra)), extra)
        rows = [{"address": each["address"], "quantity": each["quantity"]} for each in holders]
        self.in_some_order(f"{path}/addresses", rows, "quantity", asset=unit)
        mints = [
            {"tx_hash": tx.tx_hash, "action": "minted" if quantity > 0 else "burned", "amount": str(quantity)}
            for tx, quantity in minted
        ]
        self.listed(f"{path}/history", mints, asset=unit)
        moved = [tx for tx, _ in assets.moved.get(asset, [])]
        places = [self.place(tx) for tx in moved]
        self.listed(f"{path}/transactions", places, asset=unit)
        if places:
            self.check_range(f"{path}/transactions", places, random, asset=unit)
        self.listed(f"{path}/txs", [tx.tx_hash for tx in moved], asset=unit)

    def check_policy(self, policy: str) -> None:
        assets = self.chain.assets
        rows = [{"asset": "".join(each), "quantity": str(assets.supply(each))} for each in assets.of_policy(policy)]
        self.in_some_order("/assets/policy/{policy}", rows, "quantity", policy=policy)

    def check_pools(self) -> None:
        """Check the lists of the registered pools, and of those that retire."""
        pools = self.chain.pools
        self.check_ends()
        registered = [pool for pool in pools.parameters if pools.status(pool) != "retired"]
        self.listed("/pools", registered)
        rows = []
        for pool in registered:
            known = self.registered(pools.parameters[pool])
            rows.append(
                {
                    "pool_id": pool,
                    "hex": bech32_payload(pool).hex(),
                    **self.stakes(pool),
                    "declared_pledge": known["pledge"],
                    "margin_cost": known["margin_cost"],
                    "fixed_cost": known["fixed_cost"],
                    "metadata": known["metadata"],
                }
            )
        told = self.rows("/pools/extended", len(rows), "asc")
        downwards = self.rows("/pools/extended", len(rows), "desc")
        same("/pools/extended, downwards", downwards, told[::-1])
        same("/pools/extended", [without(each, "live_saturation") for each in told], rows)

    def check_ends(self) -> None:
        """Check the lists of the pools that retire or have retired."""
        for status in ("retiring", "retired"):
            self.listed(f"/pools/{status}", self.ends(status))

    def check_blocks_of(self, pool: str) -> None:
        """Check the blocks of a pool, also by epoch."""
        made = {
            epoch: [blocks.blocks[place]["id"] for place in places if blocks.info(place)["pool_id"] == pool]
            for blocks in [self.chain.blocks]
            for epoch, places in blocks.of_epoch.items()
        }
        self.listed("/pools/{pool}/blocks", [each for of_epoch in made.values() for each in of_epoch], pool=pool)
        busiest = max(made, key=lambda epoch: len(made[epoch]))
        for epoch in {busiest, max(made)}:
            self.listed("/epochs/{epoch}/blocks/{pool}", made[epoch], epoch=str(epoch), pool=pool)

    def check_updates(self, pool: str) -> None:
        self.listed("/pools/{pool}/updates", list(self.updates(pool)), pool=pool)

    def ends(self, status: str) -> list[Json]:
        """The pools of a status with the epoch of their last retirement, by epoch and then as announced."""
        last: dict[str, int] = {}
        for tx in self.ledger.transactions.values():
            for each in tx.certificates:
                if each["type"] == "stakePoolRetirement":
                    last.pop(each["stakePool"]["id"], None)
                    last[each["stakePool"]["id"]] = each["stakePool"]["retirementEpoch"]
        those = [
            pool for pool in last if pool in self.chain.pools.parameters and self.chain.pools.status(pool) == status
        ]
        return [{"pool_id": pool, "epoch": last[pool]} for pool in sorted(those, key=last.__getitem__)]

    def updates(self, pool: str) -> Iterator[Json]:
        """The registrations and retirements of a pool, in order."""
        actions = {"stakePoolRegistration": "registered", "stakePoolRetirement": "deregistered"}
        for tx in self.ledger.transactions.values():
            places = places_of(tx.declared) if tx.certificates else []
            for at, each in zip(places, tx.certificates, strict=True):
                if each["type"] in actions and each["stakePool"]["id"] == pool:
                    yield {"tx_hash": tx.tx_hash, "cert_index": at, "action": actions[each["type"]]}

    def stakes(self, pool: str) -> Json:
        known = self.chain.pools.info(pool)
        return {name: known[name] for name in ("active_stake", "live_stake", "blocks_minted")}

    def check_pool(self, pool: str) -> None:
        """Check a pool, its metadata, relays, delegators and certificates."""
        path, pools, parameters = "/pools/{poolId}", self.chain.pools, self.chain.pools.parameters[pool]
        known, info = self.registered(parameters), pools.info(pool)
        certified: dict[str, list[str]] = {"stakePoolRegistration": [], "stakePoolRetirement": []}
        for tx in self.ledger.transactions.values():
            for each in tx.certificates:
                if each["type"] in certified and each["stakePool"]["id"] == pool:
                    certified[each["type"]].append(tx.tx_hash)
        expected = {
            "pool_id": pool,
            "hex": bech32_payload(pool).hex(),
            "vrf_key": known["vrf_key"],
            **self.stakes(pool),
            "blocks_epoch": info["blocks_epoch"],
            "live_delegators": info["delegator_count"],
            "declared_pledge": known["pledge"],
            "live_pledge": str(sum(map(self.pledged(pool), known["owners"]))),
            "margin_cost": known["margin_cost"],
            "fixed_cost": known["fixed_cost"],
            "reward_account": known["reward_account"],
            "owners": known["owners"],
            "registration": certified["stakePoolRegistration"][-100:],
            "retirement": certified["stakePoolRetirement"][-100:],
            "calidus_key": None,
        }
        told = self.told(path, path.format(poolId=pool))
        same(path.format(poolId=pool), without(told, "live_size", "live_saturation", "active_size"), expected)
        assert 0 <= told["live_size"] <= 1 and 0 <= told["active_size"] <= 1, told
        place = known["metadata"]
        ids = {"pool_id": pool, "hex": bech32_payload(pool).hex()}
        self.one(f"{path}/metadata", {} if place is None else place | ids, poolId=pool)
        self.one(f"{path}/relays", known["relays"], poolId=pool)
        delegators = [
            {"address": each["stake_address"], "live_stake": each["amount"]} for each in pools.delegators(pool)
        ]
        self.in_some_order("/pools/{pool}/delegators", delegators, "live_stake", pool=pool)
        self.check_updates(pool)
        self.check_blocks_of(pool)
        self.check_pool_history(pool)

    def pledged(self, pool: str) -> Callable[[str], int]:
        """The lovelace at the addresses of an owner whose last delegation was to the pool."""
        delegated = self.chain.pools.delegated

        def of(owner: str) -> int:
            to_it = owner in delegated and delegated[owner][-1]["pool_id"] == pool
            return int(self.owners.summary(owner)["lovelace"]) if to_it else 0

        return of

    def check_script(self, digest: str) -> None:
        path, known = "/scripts/{scriptHash}", self.attachments.script(digest)
        native = known["language"] == "native"
        kind = "timelock" if native else known["language"].replace(":v", "V")
        size = None if native else known["size"]
        self.one(path, {"script_hash": digest, "type": kind, "serialised_size": size}, scriptHash=digest)
        self.one(f"{path}/json", {"json": known.get("json")}, scriptHash=digest)
        self.one(f"{path}/cbor", {"cbor": None if native else known["cbor"]}, scriptHash=digest)

    def check_datum(self, digest: str) -> None:
        path, known = "/scripts/datum/{datumHash}", self.attachments.datum(digest)
        self.one(path, {"json_value": known["json"]}, datumHash=digest)
        self.one(f"{path}/cbor", {"cbor": known["cbor"]}, datumHash=digest)

    def check_strangers(self) -> None:
        """Check that objects that are not on the chain are not found."""
        network, digest = self.ledger.network, "9" * 56
        payment = bytes([0x60 | (network == "mainnet")]) + bytes.fromhex(digest)
        unknown = {
            "block": "9" * 64,
            "epoch": "99999",
            "slot_number": "2147483647",
            "epoch_number": "99999",
            "hash": "9" * 64,
            "address": bech32("addr" if network == "mainnet" else "addr_test", payment),
            "stake_address": stake_address(network, digest, script=False),
            "asset": digest + "00",
            "policy": digest,
            "poolId": digest,
            "pool": digest,
            "scriptHash": digest,
            "datumHash": "9" * 64,
            "label": "9" * 18,
        }
        for path in paths():
            if "{" in path and path != DERIVATION:
                self.missing(path, **unknown)

    def check_derivation(self) -> None:
        """Check an address that blockfrost-tests derive, and refusals of what is not a key."""
        parts = {
            "xpub": "7ec9738746cb4708df52a455b43aa3fdee8955abaf37f68ffc79bb84fbf9e1b3"
            "9d77e2deb9749faf890ff8326d350ed3fd0e4aa271b35cad063692af87102152",
            "role": "0",
            "index": "0",
        }
        on_mainnet = (
            "addr1qxykyqgwd577heaunndagj66z0n2z0jgedjcn3qxlrujpjq49ucjdfty5p5qlw5qe28v9k988stffc2g0hx2xx86a2dqnt753m"
        )
        header, *hashes = bech32_payload(on_mainnet)
        is_mainnet = self.ledger.network == "mainnet"
        shown = on_mainnet if is_mainnet else bech32("addr_test", bytes([header & 0xF0, *hashes]))
        self.one(DERIVATION, {"xpub": parts["xpub"], "role": 0, "index": 0, "address": shown}, **parts)
        for wrong in ({"xpub": "02" * 64}, {"xpub": "00" * 63}, {"role": "-1"}, {"index": str(2**31)}):
            assert self.caller.get(ROOT + DERIVATION.format(**parts | wrong))[0] == 400, wrong

    def locked(self) -> str | None:
        """The lovelace at addresses of scripts."""
        if self.partial:
            return None
        return str(sum(output.lovelace for output in self.ledger.unspent.values() if script_of(output.address)))

    def check_network(self) -> None:
        """Check the data from the node, against the answers of /v1."""
        native = self.caller.ok("/v1/network")["data"]
        if native["supply"] is not None:
            supply = without(native["supply"], "slot_no") | {"locked": self.locked()}
            self.one("/network", {"supply": supply, "stake": stake_of(self.chain)})
        status, body = self.caller.get("/v1/genesis")
        if status == 200:
            told = self.told("/genesis", "/genesis")
            for name in ("network_magic", "epoch_length", "update_quorum", "max_lovelace_supply"):
                same(name, told[name], body["data"][name])
            if self.chain.blocks.blocks[0]["height"] > 1:  # an epoch boundary block may precede block 1
                assert self.caller.get(f"{ROOT}/network/eras")[0] == 404
            else:
                self.one("/network/eras", self.eras(body["data"]["security_parameter"]))
        status, body = self.caller.get("/v1/epochs/latest/parameters")
        if status == 200:
            told = self.told("/epochs/{epoch}/parameters", "/epochs/latest/parameters")
            same("min_fee_a", told["min_fee_a"], body["data"]["ogmios"]["minFeeCoefficient"])
            same("nonce", told["nonce"], body["data"]["nonce"])


def script_of(address: str) -> str | None:
    """The script that locks an address, None for a key."""
    if not address.startswith("addr"):
        return None
    raw = bech32_payload(address)
    return raw[1:29].hex() if raw[0] & 0x10 else None


def check_facade(facade: Facade, random: Random, most: int) -> None:
    """Check up to `most` objects of each kind, some with each trait, and that nothing else is found."""
    chain = facade.chain
    facade.check_strangers()
    facade.check_network()
    facade.check_derivation()
    for place in {*some(random, most, range(len(chain.blocks.blocks))), 0, len(chain.blocks.blocks) - 1}:
        facade.check_block(place)
    for epoch in {*some(random, most, chain.blocks.of_epoch), max(chain.blocks.of_epoch)}:
        facade.check_epoch(epoch)
    for tx in various(random, most, facade.ledger.transactions.values(), traits_of_transaction):
        facade.check_transaction(tx)
    for address in various(random, most, sorted(facade.ledger.of_address), facade.traits_of_address):
        facade.check_address(address, random)
    for credential in various(random, most, facade.owners.first_address, facade.traits_of_credential):
        facade.check_credential(credential, random)
    for account in various(random, most, facade.accounts(), facade.traits_of_account):
        facade.check_account(account)
    holders, _ = chain.assets.holdings()
    for asset in various(random, most, chain.assets.known, facade.traits_of_asset):
        facade.check_asset(asset, holders.get(asset, []), random)
        facade.check_policy(asset[0])
    facade.check_pools()
    facade.check_stakes()
    for pool in various(random, most, chain.pools.parameters, facade.traits_of_pool):
        facade.check_pool(pool)
    scripts, datums = facade.attachments.scripts, facade.attachments.datums
    for digest in various(random, most, scripts, lambda digest: [scripts[digest][0]["language"]]):
        facade.check_script(digest)
    for digest in some(random, most, datums):
        facade.check_datum(digest)


def some(random: Random, most: int, every: Iterable[Entity]) -> list[Entity]:
    """At most `most` of them, at random."""
    found = list(every)
    return found if len(found) <= most else random.sample(found, most)


def various(
    random: Random, most: int, every: Iterable[Entity], traits: Callable[[Entity], Iterable[object]]
) -> list[Entity]:
    """The same, and one more for each trait that these lack."""
    with_trait: dict[object, list[Entity]] = defaultdict(list)
    found = list(every)
    for each in found:
        for trait in traits(each):
            with_trait[trait].append(each)
    chosen = some(random, most, found)
    for those in with_trait.values():
        if not any(each in chosen for each in those):
            chosen.append(random.choice(those))
    return chosen


def traits_of_transaction(tx: Transaction) -> Iterator[object]:
    yield from (("certificate", each["type"], "stakePool" in each) for each in tx.certificates)
    yield from (("metadata", "cbor" in sent) for sent in tx.metadata.values())
    yield "withdrawals", bool(tx.withdrawals)
    yield "spends", tx.declared.get("spends")
    yield "mint", min((quantity > 0 for quantity in tx.mint.values()), default=None)
    yield from (("redeemer", each["validator"]["purpose"]) for each in tx.declared.get("redeemers", ()))
    yield "signers", "requiredExtraSignatories" in tx.declared
    yield from (("names", kind, bool(each)) for kind, each in (("reads", tx.references), ("risks", tx.collaterals)))
    yield "moves", tuple(sorted({pot for _, pot, _ in moved_by(tx) or ()}))
    yield "change of collateral", "collateralReturn" in tx.declared
    yield "unknown input", any(source is None for _, source in tx.inputs)
    for _, output in tx.outputs:
        yield "datum", output.datum is not None, output.datum_hash is not None
        yield "script", output.script and output.script["language"]


def by_unit(told: Any) -> Any:
    """An answer with amounts by unit, each of which may occur once."""
    if isinstance(told, list):
        return [by_unit(each) for each in told]
    if not isinstance(told, dict):
        return told
    shown = {name: by_unit(part) for name, part in told.items()}
    for name in ("amount", "output_amount", "received_sum", "sent_sum"):
        if isinstance(told.get(name), list):
            assert told[name][0]["unit"] == "lovelace", told
            shown[name] = {each["unit"]: each["quantity"] for each in told[name]}
            assert [each["unit"] for each in told[name][1:]] == sorted(shown[name].keys() - {"lovelace"}), told
    return shown


def total(outputs: Iterable[Output]) -> dict[str, str]:
    found = {"lovelace": 0}
    for output in outputs:
        found["lovelace"] += output.lovelace
        for asset, quantity in output.assets.items():
            found["".join(asset)] = found.get("".join(asset), 0) + quantity
    return {unit: str(quantity) for unit, quantity in found.items()}


def genesis_block(address: str, network: str) -> str:
    """The block that cardano-db-sync gives to outputs of Shelley's genesis or of Byron's, by `ByronGenesisHash`."""
    return f"{b'Shelley Genesis Block Hash '.hex()}0000000000" if address.startswith("addr") else BYRON_GENESIS[network]


def out_sum(tx: Transaction) -> str:
    """The column of cardano-db-sync that blockfrost-backend-ryo gives as the amount of a delegation."""
    return str(sum(output.lovelace for _, output in tx.outputs))


def units(held: dict[AssetKey, int]) -> dict[str, str]:
    return {"".join(asset): str(quantity) for asset, quantity in held.items()}


def carried(output: Output | None) -> Json:
    if output is None:
        return dict.fromkeys(("data_hash", "inline_datum", "reference_script_hash"))
    return {
        "data_hash": output.datum_hash if output.datum is None else hash_of(output.datum),
        "inline_datum": output.datum,
        "reference_script_hash": None if output.script is None else script_hash(output.script),
    }


def deposit(tx: Transaction, valid: bool) -> int | None:
    """The lovelace that neither outputs, fee nor donation explain; None if the spent outputs are unknown."""
    if not valid:
        return 0
    known = [source.lovelace for _, source in tx.inputs if source is not None]
    if tx.fee is None or len(known) < len(tx.inputs):
        return None
    made = sum(output.lovelace for _, output in tx.outputs)
    return sum(known) + sum(tx.withdrawals.values()) - made - tx.fee - donation(tx)


def lovelace_in(output: Json) -> str:
    return str(output["value"]["ada"]["lovelace"])


def text(number: int | None) -> str | None:
    return None if number is None else str(number)


def unix(time: str) -> int:
    return int(datetime.fromisoformat(time).timestamp())


def without(told: Json, *names: str) -> Json:
    return {name: part for name, part in told.items() if name not in names}


def metadata_place(pool: Json) -> Json | None:
    place = pool.get("metadata")
    return None if not place else METADATA_PARTS | {"url": place["url"], "hash": place["hash"]}


def relay(said: Json) -> Json:
    name, port = said.get("hostname"), said.get("port")
    return {
        "ipv4": said.get("ipv4"),
        "ipv6": said.get("ipv6"),
        "dns": None if port is None else name,
        "dns_srv": name if port is None else None,
        "port": port or 0,
    }


def representative(said: Json | None) -> str | None:
    """The id of a representative by CIP-129."""
    match said:
        case None:
            return None
        case {"type": "registered"}:
            return bech32("drep", CREDENTIAL_BYTES[said.get("from", "verificationKey")] + bytes.fromhex(said["id"]))
        case {"type": "abstain"}:
            return "drep_always_abstain"
    return "drep_always_no_confidence"


def plain_of(sent: Json) -> Any:
    """Metadata under one label as plain JSON, from its CBOR or from either JSON of a node."""
    if "cbor" in sent:
        return plain(cbor2.loads(bytes.fromhex(sent["cbor"])))
    return undetailed(sent["json"])


def undetailed(value: Any) -> Any:
    match value:
        case {"int": int(known)} | {"string": str(known)}:
            return known
        case {"bytes": str(digits)}:
            return f"0x{digits}"
        case {"list": list(items)}:
            return [*map(undetailed, items)]
        case {"map": list(pairs)}:
            return {key_of(undetailed(pair["k"])): undetailed(pair["v"]) for pair in pairs}
    return value


def plain(value: Any) -> Any:
    match value:
        case bytes():
            return f"0x{value.hex()}"
        case list() | tuple():
            return [*map(plain, value)]
        case dict():
            return {key_of(plain(key)): plain(each) for key, each in value.items()}
    return value


def key_of(key: Any) -> str:
    return key if isinstance(key, str) else as_text(key)


TEXTS = {
    "000de140": ("name", "image", "mediaType", "description"),
    "0014df10": ("name", "description", "ticker", "url", "logo"),
    "001bc280": ("name", "image", "mediaType", "description"),
}


def cip68_of(datum: str | None, label: str) -> tuple[Json, str, Any] | None:
    """The whole map of a CIP-68 datum, its standard and its third field, by the rules of blockfrost-utils. Values of
    fields that CIP-68 does not name are as `decoded` returns them.
    """
    content = None if datum is None else cbor2.loads(bytes.fromhex(datum))
    fields = content.value if isinstance(content, cbor2.CBORTag) else []
    if not isinstance(fields, list) or len(fields) < 2 or not isinstance(fields[0], dict) or fields[1] not in (1, 2, 3):
        return None
    entries = {text_or_hex(key): value for key, value in fields[0].items()}
    for name in TEXTS[label]:
        if isinstance(entries.get(name), bytes | list):
            entries[name] = text_of_pieces(entries[name])
    if label != "0014df10" and "files" in entries:
        files = [
            {text_or_hex(key): text_of_pieces(value) for key, value in file.items()} if isinstance(file, dict) else {}
            for file in (entries["files"] if isinstance(entries["files"], list) else [{}])
        ]
        known, needed = {"name", "mediaType", "src"}, {"mediaType", "src"}
        if not all(needed <= file.keys() <= known and None not in file.values() for file in files):
            return None
        entries["files"] = files
    needed = {"name", "description" if label == "0014df10" else "image"}
    return (entries, f"CIP68v{fields[1]}", (*fields, None)[2]) if needed <= entries.keys() else None


def decoded(shown: Json, label: str) -> Json:
    """Metadata with fields that are shown as CBOR decoded."""
    as_it_is = (*TEXTS[label], "files", *(() if label == "000de140" else ("decimals",)))
    return {name: part if name in as_it_is else cbor2.loads(bytes.fromhex(part)) for name, part in shown.items()}


def text_of_pieces(value: Any) -> str | None:
    """The text of bytes, whole or in pieces; None of anything else."""
    pieces = value if isinstance(value, list) else [value]
    return text_or_hex(b"".join(pieces)) if all(isinstance(piece, bytes) for piece in pieces) else None


def text_or_hex(value: bytes) -> str:
    return text_of(value) or value.hex()


def cip25_of(asset: AssetKey, minted: Iterable[tuple[Transaction, int]]) -> tuple[Any, str | None]:
    """The CIP-25 metadata of an asset, from the last transaction that minted and described it, and its standard."""
    for tx, quantity in reversed([*minted]):
        label = tx.metadata.get("721")
        if quantity > 0 and label is not None:
            body = cbor2.loads(bytes.fromhex(label["cbor"])) if "cbor" in label else label["json"]
            entry = by_hex(by_hex(body, asset[0], as_text=False), asset[1], as_text=True)
            if isinstance(entry, dict):
                return plain(entry), cip25_standard(body, asset)
    return None, None


def cip25_standard(body: Json, asset: AssetKey) -> str | None:
    """The version of CIP-25 that metadata complies with: `getOnchainMetadata` of @blockfrost/openapi."""
    version, (policy, name) = int(float(body.get("version") or 1)), asset
    keys: dict[int, list[tuple[Any, Any]]] = {
        1: [(policy, bytes.fromhex(name).decode(errors="replace")), (policy, name)],
        2: [(bytes.fromhex(policy), bytes.fromhex(name))],
    }
    for policy_key, name_key in keys.get(version, []):
        of_policy = body.get(policy_key, {})
        if isinstance(of_policy, dict) and name_key in of_policy:
            is_valid = jsonschema.Draft202012Validator(CIP25).is_valid(plain(of_policy[name_key]))
            return f"CIP25v{version}" if is_valid else None
    return None


TEXT_OR_TEXTS: Json = {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}
CIP25: Json = {  # the schema `asset_onchain_metadata_cip25` of @blockfrost/openapi
    "type": "object",
    "required": ["name", "image"],
    "properties": {
        "name": {"type": "string"},
        "image": TEXT_OR_TEXTS,
        "description": TEXT_OR_TEXTS,
        "mediaType": {"type": "string"},
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["mediaType", "src"],
                "properties": {"name": {"type": "string"}, "mediaType": {"type": "string"}, "src": TEXT_OR_TEXTS},
            },
        },
    },
}
