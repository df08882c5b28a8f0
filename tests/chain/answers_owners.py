"""The answers about addresses, stake accounts and outputs, read completely and compared with the model.

Also several at once: the answers of `POST /v1/bulk/…` equal those of the single questions.
"""

from collections.abc import Sequence
from random import Random
from typing import Any

from tests.chain.answers import (
    along_cursors,
    as_text,
    asked,
    asset_info,
    check_by_figure,
    check_by_slot,
    check_csv,
    check_depths,
    collected,
    full,
    orders,
    walk,
    without_nulls,
)
from tests.chain.compared import same
from tests.chain.harness import Caller
from tests.chain.model import Json, OutputReference, Transaction, bech32, bech32_payload
from tests.chain.model_assets import AssetKey
from tests.chain.model_certificates import with_origin
from tests.chain.model_chain import Chain
from tests.chain.model_owners import ORIGINS, Owners

MAX_ROWS = 500  # of a page
ACCOUNT_COLUMNS = ("stake_address", "address", "quantity")


def check_address(caller: Caller, owners: Owners, address: str) -> None:
    """Check the balance of an address, its outputs and its assets; the balance also as its wallet writes it."""
    path = f"/v1/addresses/{address}"
    for form in (address, *wallets_forms(address)):
        body = caller.ok(f"/v1/addresses/{form}")
        same(path, body["data"], owners.address(address))
        same(path, body["last_updated"], owners.ledger.last_updated())
    check_owned(caller, owners, path, address)


def wallets_forms(address: str) -> list[str]:
    """Addresses that a node replaces with this one when it reads them: those with a pointer that does not fit."""
    raw = bech32_payload(address) if address.startswith("addr") else b""
    if raw[29:] != bytes(3):
        return []
    prefix = address.rpartition("1")[0]
    return [bech32(prefix, raw[:29] + bytes.fromhex(absurd)) for absurd in ("bcd9819561bddc6614", "808080000000")]


def account_info(chain: Chain, owners: Owners, account: str) -> Json:
    """GET /v1/accounts/:stake_address, without its rewards, which can't be derived from blocks."""
    pool, epoch = chain.pools.delegations.get(account, (None, None))
    representative = chain.pools.votes.representatives.get(account)
    raw = bech32_payload(account)
    return {
        "stake_address": account,
        "stake_credential": {"id": raw[1:].hex(), "origin": ORIGINS[raw[0] >> 4 & 1]},
        "registered": account in chain.pools.registered,
        "pool_id": pool,
        "active_epoch_no": None if epoch is None else epoch + 2,
        "delegate_representative": None if representative is None else with_origin(representative),
        "address_count": len(owners.addresses.get(account, [])),
        "withdrawal_count": len(owners.withdrawals(account)),
        **owners.summary(account),
    }


def without_rewards(told: Json, expected: Json) -> Json:
    """An account as answered, without its rewards.

    If the indexed blocks begin in the middle, it is unknown whether an account without certificates is registered.
    """
    assert told["rewards"] >= 0, told
    known = told if told["registered"] is not None or expected["registered"] else told | {"registered": False}
    return {name: value for name, value in known.items() if name != "rewards"}


def check_account(caller: Caller, chain: Chain, owners: Owners, account: str) -> None:
    """Check the balance of an account, its addresses, outputs, assets, transactions, delegations and withdrawals."""
    path = f"/v1/accounts/{account}"
    expected = account_info(chain, owners, account)
    same(path, without_rewards(caller.ok(path)["data"], expected), expected)
    check_owned(caller, owners, path, account)
    addresses = owners.addresses.get(account, [])
    listed = [row["address"] for row in collected(caller, f"{path}/addresses", len(addresses), False)]
    same(f"{path}/addresses", listed, addresses[::-1])
    check_cursors(caller, f"{path}/addresses", [{"address": each} for each in addresses])
    delegated = chain.pools.delegated.get(account, [])
    check_by_slot(caller, f"{path}/delegations", delegated, total=False)
    check_cursors(caller, f"{path}/delegations", delegated)
    check_by_slot(caller, f"{path}/withdrawals", owners.withdrawals(account), total=True)
    check_transactions(caller, owners, path, account)


def check_credential(caller: Caller, owners: Owners, credential: str) -> None:
    """Check what the addresses with a payment credential hold, in each form of it, and their transactions."""
    path, expected = f"/v1/payment-credentials/{credential}", owners.payment_credential(credential)
    for form in (credential, bech32("script", bech32_payload(credential))):
        same(path, caller.ok(f"/v1/payment-credentials/{form}")["data"], expected)
    check_owned(caller, owners, path, credential)
    check_transactions(caller, owners, path, credential)


def check_transactions(caller: Caller, owners: Owners, path: str, owner: str) -> None:
    """Check the transactions of an account or of a payment credential, from the beginning and from some depths."""
    ledger, transactions = owners.ledger, owners.transactions.get(owner, [])
    for order in orders(transactions):
        rows = [ledger.entry(tx) for tx in (transactions if order == "asc" else transactions[::-1])]
        question = asked(f"{path}/transactions", {"order": order})
        same(question, walk(caller, f"{path}/transactions", 7, order), rows)
        check_slots(caller, f"{path}/transactions", rows, order)
    check_depths(caller, f"{path}/transactions", [ledger.entry(tx) for tx in transactions], Random(owner), order="asc")
    detailed = walk(caller, f"{path}/transactions/detailed", 20, "asc")
    same(f"{path}/transactions/detailed", detailed, [ledger.detail(tx) for tx in transactions])


def check_slots(caller: Caller, path: str, rows: list[Json], order: str) -> None:
    """Check that a list begins at the slot of the entry in its middle."""
    if rows:
        slot = rows[len(rows) // 2]["slot_no"]
        expected = [row for row in rows if (row["slot_no"] >= slot if order == "asc" else row["slot_no"] <= slot)]
        body = caller.ok(path, order=order, fromSlot=slot, limit=3)
        same(f"{path} from {slot}", (body["data"], body["pagination"]["total"]), (expected[:3], len(expected)))


def check_owned(caller: Caller, owners: Owners, path: str, owner: str) -> None:
    """Check the unspent outputs of an owner, also those with each of its assets, its assets and totals."""
    same(f"{path}/totals", caller.ok(f"{path}/totals")["data"], owners.totals(owner))
    unspent = owners.unspent(owner)
    for limit in (3, MAX_ROWS) if 3 < len(unspent) < 60 else (MAX_ROWS,):
        for order in orders(unspent):
            rows = unspent if order == "asc" else unspent[::-1]
            found = collected(caller, f"{path}/utxos", len(rows), False, limit=limit, order=order)
            same(asked(f"{path}/utxos", {"limit": limit, "order": order}), found, rows)
    check_depths(caller, f"{path}/utxos", unspent, Random(owner), order="asc")
    check_cursors(caller, f"{path}/utxos", unspent)
    holdings = owners.holdings(owner)
    listed = collected(caller, f"{path}/assets", len(holdings), False, order="asc")
    same(f"{path}/assets, sorted as text", sorted(listed, key=as_text), sorted(holdings, key=as_text))
    if len(holdings) > 1:
        newest_first = collected(caller, f"{path}/assets", len(holdings), False, limit=len(holdings) - 1)
        same(f"{path}/assets, newest first", newest_first, listed[::-1])
        check_cursors(caller, f"{path}/assets", listed)
    for policy, name in owners.held(owner):
        rows, asset = owners.unspent(owner, (policy, name)), f"{policy}.{name}"
        found = collected(caller, f"{path}/utxos", len(rows), False, limit=2, order="asc", asset=asset)
        same(asked(f"{path}/utxos", {"asset": asset}), found, rows)
        check_cursors(caller, f"{path}/utxos", rows, asset=asset)


def check_cursors(caller: Caller, path: str, oldest_first: list[Json], **query: str) -> None:
    """Walk a list along its cursors, in both directions."""
    limit = min(max(len(oldest_first) // 5, 1), MAX_ROWS)
    for order in orders(oldest_first):
        rows = oldest_first if order == "asc" else oldest_first[::-1]
        question = asked(path, query | {"limit": limit, "order": order})
        same(f"{question}, along cursors", along_cursors(caller, path, limit, order=order, **query), rows)


def check_output(caller: Caller, owners: Owners, reference: OutputReference) -> None:
    """Check an output and its spender."""
    path = f"/v1/utxos/{reference[0]}/{reference[1]}"
    same(path, caller.ok(path)["data"], owners.made_output(reference))


def check_holding_accounts(caller: Caller, path: str, expected: list[Json], slot: int) -> None:
    """Check the holders by account of an asset or a policy, and their download."""
    check_by_figure(caller, f"{path}/holders/accounts", expected, "quantity", total=False)
    check_csv(caller, f"{path}/holders/accounts.csv", ACCOUNT_COLUMNS, expected, slot)


def check_account_holders(caller: Caller, chain: Chain, owners: Owners) -> None:
    """Check the holders by account of every asset and policy."""
    by_asset, by_policy = owners.account_holders()
    for policy, name in chain.assets.minted:
        path = f"/v1/assets/{policy}.{name}"
        check_holding_accounts(caller, path, by_asset.get((policy, name), []), chain.ledger.slot)
    for policy in {policy for policy, _ in chain.assets.minted}:
        path = f"/v1/assets/policy/{policy}"
        check_holding_accounts(caller, path, by_policy.get(policy, []), chain.ledger.slot)


def check_bulk(kind: str, ids: Sequence[str], told: Sequence[Any], expected: Sequence[Any]) -> None:
    """Compare the answers about several ids, one by one."""
    assert len(told) == len(ids), f"/v1/bulk/{kind}: {len(told)} answers to {len(ids)} ids"
    for each, one, other in zip(ids, told, expected, strict=True):
        same(f"/v1/bulk/{kind} of {each}", one, other)


def check_bulk_addresses(caller: Caller, owners: Owners, addresses: Sequence[str]) -> None:
    """Check up to 100 addresses at once."""
    told = caller.bulk("addresses", addresses)
    check_bulk("addresses", addresses, told, [owners.address(address) for address in addresses])


def check_bulk_accounts(caller: Caller, chain: Chain, owners: Owners, accounts: Sequence[str]) -> None:
    """Check up to 100 accounts at once."""
    expected = [account_info(chain, owners, account) for account in accounts]
    told = [without_rewards(*pair) for pair in zip(caller.bulk("accounts", accounts), expected, strict=True)]
    check_bulk("accounts", accounts, told, expected)


def check_bulk_transactions(caller: Caller, chain: Chain, transactions: Sequence[Transaction]) -> None:
    """Check up to 100 transactions at once."""
    ids = [tx.tx_hash for tx in transactions]
    told = caller.bulk("transactions", ids)
    expected = [full(chain.ledger, tx, one) for tx, one in zip(transactions, told, strict=True)]
    check_bulk("transactions", ids, told, expected)


def check_bulk_assets(caller: Caller, chain: Chain, assets: Sequence[AssetKey]) -> None:
    """Check up to 100 assets at once."""
    ids = [f"{policy}.{name}" for policy, name in assets]
    told = [without_nulls(each) for each in caller.bulk("assets", ids)]
    check_bulk("assets", ids, told, [asset_info(chain, asset) for asset in assets])


def check_bulk_outputs(caller: Caller, owners: Owners, references: Sequence[OutputReference]) -> None:
    """Check up to 100 outputs at once."""
    ids = [f"{tx_hash}#{index}" for tx_hash, index in references]
    check_bulk("utxos", ids, caller.bulk("utxos", ids), [owners.made_output(each) for each in references])
