"""The lists of all labels, assets and scripts, and of the metadata under a label, compared with the model."""

import json
from collections import defaultdict
from math import ceil
from pathlib import Path
from random import Random
from typing import Any

import cbor2

from api.blockfrost.shape import ROOT
from tests.chain.answers import orders
from tests.chain.answers_blockfrost import (
    PURPOSES,
    Facade,
    carried,
    cip25_of,
    cip68_of,
    plain_of,
    some,
    total,
    various,
)
from tests.chain.compared import same
from tests.chain.harness import Caller
from tests.chain.model import Json, Ledger, Transaction
from tests.chain.model_assets import AssetKey
from tests.chain.model_attachments import metadata_of, plutus
from tests.chain.model_owners import hash_of, script_hash

LABELS = "/metadata/txs/labels"
LABEL, LABEL_CBOR = f"{LABELS}/{{label}}", f"{LABELS}/{{label}}/cbor"
NAMED: dict[str, str] = json.loads((Path(__file__).parents[1] / "vectors" / "blockfrost-cip10.json").read_text())
MAX_ASSETS, MAX_HOLDERS = 1_000, 100


def labelled(ledger: Ledger) -> dict[str, list[Transaction]]:
    """The transactions with metadata under each label, in the order of the labels; failed scripts have none."""
    found = defaultdict[str, list[Transaction]](list)
    for tx in ledger.transactions.values():
        for label in tx.metadata:
            found[label].append(tx)
    return dict(sorted(found.items(), key=lambda item: int(item[0])))


def check_labels(caller: Caller, ledger: Ledger, random: Random, most: int, metadata_cbor: bool = True) -> None:
    """Check /v1/metadata/labels, and up to `most` labels. Labels without CBOR in recorded blocks are not compared."""
    by_label = labelled(ledger)
    rows = [{"label": label, "transaction_count": len(txs)} for label, txs in by_label.items()]
    read = list[Json]()
    while True:
        body = caller.ok("/v1/metadata/labels", limit=5, offset=len(read))
        read += body["data"]
        same("labels", body["last_updated"], ledger.last_updated())
        if not body["pagination"]["hasMore"]:
            break
    same("labels", read, rows)
    for order in ("asc", "desc"):
        read, then = list[Json](), dict[str, str]()
        while True:
            body = caller.ok("/v1/metadata/labels", limit=4, order=order, **then)
            read += body["data"]
            if not body["pagination"]["hasMore"]:
                break
            then = {"cursor": body["pagination"]["next_cursor"]}
        same("labels by cursor", read, rows if order == "asc" else rows[::-1])
    same("labels", caller.ok("/v1/metadata/labels", limit=500, order="desc")["data"], rows[::-1][:500])
    for label in {*some(random, most, by_label), *({"721"} & by_label.keys())}:
        for order in orders(by_label[label]):
            expected = by_label[label] if order == "asc" else by_label[label][::-1]
            pages = [(100, 0), *((random.randint(1, 100), random.randrange(len(expected) + 2)) for _ in range(3))]
            for limit, offset in pages:
                check_labelled(caller, ledger, label, expected[offset : offset + limit], metadata_cbor, order, offset)


def check_labelled(
    caller: Caller, ledger: Ledger, label: str, expected: list[Transaction], metadata_cbor: bool, *page: Any
) -> None:
    """Check a page of /v1/metadata/labels/:label."""
    path, (order, offset) = f"/v1/metadata/labels/{label}", page
    body = caller.ok(path, limit=max(len(expected), 1), offset=offset, order=order)
    rows = []
    for tx, told in zip(expected, body["data"], strict=True):
        known = metadata_of(tx)[label]
        if known is not None and not metadata_cbor:
            known = {"json": known["json"]}
        rows.append(ledger.entry(tx) | {"metadata": known or told["metadata"]})
    same(path, body["data"], rows)
    same(path, body["pagination"]["total"], len(labelled(ledger)[label]))


def check_lists(facade: Facade, random: Random, most: int) -> None:
    """Check what the façade lists beyond single subjects."""
    by_label = labelled(facade.ledger)
    facade.listed(
        LABELS,
        [{"label": label, "cip10": NAMED.get(label), "count": str(len(txs))} for label, txs in by_label.items()],
    )
    facade.answered |= {LABEL, LABEL_CBOR} if not by_label else set()
    for label in some(random, most, by_label):
        check_label(facade, label, by_label[label])
    facade.listed("/assets", minted(facade))
    for asset in various(random, most, facade.chain.assets.known, facade.traits_of_asset):
        check_asset_outputs(facade, asset, random)
    position = {tx_hash: at for at, tx_hash in enumerate(facade.ledger.transactions)}
    first = {digest: position[tx.tx_hash] for digest, (_, tx) in facade.attachments.scripts.items()}
    ordered = sorted(first, key=lambda digest: (first[digest], digest))
    facade.listed("/scripts", [{"script_hash": digest} for digest in ordered])
    held = [script_hash(output.script) for output in facade.ledger.unspent.values() if output.script is not None]
    for digest in {*some(random, most, ordered), *some(random, most, held)}:
        check_script_outputs(facade, digest)
    by_script = redeemed(facade)
    for digest in {*some(random, most, ordered), *some(random, most, [each for each in by_script if each in first])}:
        check_redeemers(facade, digest, by_script.get(digest, []))


Redeemed = tuple[Transaction, Json]
"""A transaction and a redeemer in it."""


def redeemed(facade: Facade) -> dict[str, list[Redeemed]]:
    """The redeemers of each script, in the order of the chain, in a transaction in that of purposes and places."""
    found = defaultdict[str, list[Redeemed]](list)
    for tx in facade.ledger.transactions.values():
        if tx.declared.get("spends", "inputs") != "inputs":
            continue
        in_order = sorted(
            tx.declared.get("redeemers", ()),
            key=lambda each: (PURPOSES[each["validator"]["purpose"]][0], each["validator"]["index"]),
        )
        for each in in_order:
            _, purpose = PURPOSES[each["validator"]["purpose"]]
            digest = facade.pointed(tx, purpose, each["validator"]["index"])
            if digest is not None:
                found[digest].append((tx, each))
    return found


def check_redeemers(facade: Facade, digest: str, oldest_first: list[Redeemed]) -> None:
    """Check the redeemers of a script at /v1 and below /blockfrost."""
    path, native = "/scripts/{scriptHash}/redeemers", f"/v1/scripts/{digest}/redeemers"
    prices = facade.prices()
    bare = any(not facade.has_bytes(facade.places[tx.block["id"]]) for tx, _ in oldest_first)
    if bare or (oldest_first and prices is None):
        status, body = facade.caller.get(f"{ROOT}/scripts/{digest}/redeemers", count=100)
        assert status == 503, (digest, status, body)
        facade.answered.add(path)
        return
    clock, rows, own = facade.ledger.clock, list[Json](), list[Json]()
    for tx, each in oldest_first:
        (_, purpose), index = PURPOSES[each["validator"]["purpose"]], each["validator"]["index"]
        units, data_hash = each["executionUnits"], hash_of(each["redeemer"])
        assert prices is not None, "there are redeemers"
        rows.append(
            {
                "tx_hash": tx.tx_hash,
                "tx_index": index,
                "purpose": purpose,
                "unit_mem": str(units["memory"]),
                "unit_steps": str(units["cpu"]),
                "fee": str(ceil(units["memory"] * prices[0] + units["cpu"] * prices[1])),
                "redeemer_data_hash": data_hash,
                "datum_hash": data_hash,
            }
        )
        own.append(
            {
                "tx_hash": tx.tx_hash,
                "slot_no": tx.slot,
                "block_time": clock.time(tx.slot),
                "purpose": purpose,
                "index": index,
                "data_hash": data_hash,
                "memory": str(units["memory"]),
                "cpu": str(units["cpu"]),
            }
        )
    facade.listed(path, rows, scriptHash=digest)
    for order in orders(own):
        expected, read = own if order == "asc" else own[::-1], list[Json]()
        for offset in range(0, len(own) or 1, 3):
            body = facade.caller.ok(native, order=order, limit=3, offset=offset)
            same(native, body["pagination"]["total"], len(own))
            read += body["data"]
        same(native, read, expected)


def check_label(facade: Facade, label: str, oldest_first: list[Transaction]) -> None:
    """Check the metadata under a label, in pages of three and one beyond the end."""
    count = max(3, len(oldest_first) // 3)
    for order in orders(oldest_first):
        expected = oldest_first if order == "asc" else oldest_first[::-1]
        for page, first in enumerate(range(0, len(expected), min(count, 100)), 1):
            query: Json = {"order": order, "count": min(count, 100), "page": page}
            some_of = expected[first : first + min(count, 100)]
            name = LABEL.format(label=label)
            told = facade.told(LABEL, name, **query)
            same(name, [row["tx_hash"] for row in told], [tx.tx_hash for tx in some_of])
            same(name, [row["json_metadata"] for row in told], [plain_of(tx.metadata[label]) for tx in some_of])
            check_cbor(facade.told(LABEL_CBOR, LABEL_CBOR.format(label=label), **query), label, some_of, facade)
        beyond = {"order": order, "count": 100, "page": len(expected) // 100 + 2}
        assert facade.caller.get(ROOT + LABEL.format(label=label), **beyond)[0] == 404


def check_cbor(told: list[Json], label: str, expected: list[Transaction], facade: Facade) -> None:
    for row, tx in zip(told, expected, strict=True):
        sent = tx.metadata[label].get("cbor") if facade.metadata_cbor else None
        whole = row["metadata"]
        assert (whole is None) == (sent is None), row
        if sent is not None:
            same(label, cbor2.loads(bytes.fromhex(whole)), {int(label): cbor2.loads(bytes.fromhex(sent))})
        same(label, row["cbor_metadata"], None if whole is None else f"\\x{whole}")
        same(label, row["tx_hash"], tx.tx_hash)


def minted(facade: Facade) -> list[Json]:
    """All assets in the order of their first mints."""
    first = dict[AssetKey, None]()
    for tx in facade.ledger.transactions.values():
        first |= dict.fromkeys(sorted(asset for asset, quantity in tx.mint.items() if quantity > 0))
    supply = facade.chain.assets.supply
    return [{"asset": "".join(asset), "quantity": str(supply(asset))} for asset in first]


def check_asset_outputs(facade: Facade, asset: AssetKey, random: Random) -> None:
    """Check the unspent outputs that hold an asset, and those between two places."""
    path, unit = "/assets/{asset}/utxos", "".join(asset)
    transactions, placed = facade.ledger.transactions, {tx: at for at, tx in enumerate(facade.ledger.transactions)}
    held = sorted(
        ((at, output) for at, output in facade.ledger.unspent.items() if asset in output.assets),
        key=lambda item: (placed[item[0][0]], item[0][1]),
    )
    name = path.format(asset=unit)
    if len({output.address for _, output in held}) > MAX_HOLDERS:
        assert facade.caller.get(ROOT + name)[0] == 400
        facade.answered.add(path)
        return
    rows: list[Json] = [
        {
            "address": output.address,
            "tx_hash": tx_hash,
            "output_index": index,
            "amount": total([output]),
            "block": transactions[tx_hash].block["id"],
            "block_height": transactions[tx_hash].block["height"],
            "block_time": facade.seconds(transactions[tx_hash].slot),
            **carried(output),
            "inline_datum_json": None if output.datum is None else plutus(output.datum),
        }
        for (tx_hash, index), output in held
    ]
    facade.listed(path, rows, asset=unit)
    for _ in range(min(len(rows), 2)):
        first, last = sorted(random.choice(rows)["block_height"] for _ in range(2))
        told = facade.told(path, name, **{"from": first, "to": last})
        same(name, told, [row for row in rows if first <= row["block_height"] <= last][:100])


def check_script_outputs(facade: Facade, digest: str) -> None:
    """Check the unspent outputs with a reference script."""
    transactions, placed = facade.ledger.transactions, {tx: at for at, tx in enumerate(facade.ledger.transactions)}
    held = sorted(
        (
            (at, output)
            for at, output in facade.ledger.unspent.items()
            if output.script is not None and script_hash(output.script) == digest
        ),
        key=lambda item: (placed[item[0][0]], item[0][1]),
    )
    rows = [
        {
            "address": output.address,
            "tx_hash": tx_hash,
            "output_index": index,
            "amount": total([output]),
            "block": transactions[tx_hash].block["id"],
            **carried(output),
        }
        for (tx_hash, index), output in held
    ]
    facade.listed("/scripts/{scriptHash}/utxos", rows, scriptHash=digest)


def check_extended(facade: Facade, address: str) -> None:
    """Check what is known of the assets of an address."""
    path, assets = "/addresses/{address}/extended", facade.chain.assets
    held = facade.owners.held(address)
    if len(held) > MAX_ASSETS:
        return
    plain = facade.told("/addresses/{address}", f"/addresses/{address}")
    same(path, facade.told(path, path.format(address=address)), plain)
    _, told = facade.caller.get(ROOT + path.format(address=address))
    lovelace, *others = told["amount"]
    same(address, (lovelace["decimals"], lovelace["has_nft_onchain_metadata"]), (6, False))
    for each in others:
        asset = each["unit"][:56], each["unit"][56:]
        by_datum: Any = cip68_of(assets.reference_datum(asset), asset[1][:8])
        by_label, _ = cip25_of(asset, assets.minted.get(asset, []))
        same(address, each["has_nft_onchain_metadata"], bool(by_datum) or by_label is not None)
        same(address, each["decimals"], by_datum[0].get("decimals") if by_datum else None)
