"""The entries that history says derived tables must have: one side of what verify compares (entries.py).

digests.sql has the entries of the tables, and histories.py those of tables of histories.
"""

from collections.abc import Sequence
from itertools import chain

import msgspec
import numpy as np

from indexer.verify import entries
from indexer.verify.entries import Entries
from indexer.verify.history import flows
from indexer.verify.history.flows import Flows, Labels, Mint, OutputColumns, Redeemed, Withdrawal
from indexer.verify.history.numbers import Numbers
from indexer.verify.history.rows import GenesisOutput
from indexer.verify.history.spenders import Spenders, output_no
from indexer.verify.keys import PRIME, Ints, Mask, Words, distinct, ints, key_of, places_in, sums_at, weight_of
from shared import metadata, sql
from shared.ledger import LOVELACE_NO, AddressNo, AssetNo, ScriptKey, StakeNo
from shared.sql import Connection

_ACCOUNT_FACTOR = 1_640_531_527
"""Tells the account of an output from its address. digests.sql has the same."""
_CREDENTIAL_FACTOR = 1_183_186_591
"""Tells its credential_no from both. digests.sql has the same."""


def of_genesis(outputs: Sequence[GenesisOutput], spenders: Spenders) -> dict[str, Entries]:
    """The entries of genesis outputs, by table."""
    made, tx_id = flows.of_genesis(outputs), ints([output.tx_id for output in outputs])
    account_no = ints([-1 if output.stake_no is None else output.stake_no for output in outputs])
    credential_no = ints([-1 if output.credential_no is None else output.credential_no for output in outputs])
    unspent = spenders.of_genesis(outputs) < 0
    untouched = {output.address_no: output.stake_no for output in outputs if output.stake_no and not output.in_history}
    return {
        "utxo": _unspent(made, account_no, credential_no, tx_id, unspent),
        "stake": _balances(made, account_no, unspent),
        "address_count": entries.of_accounts(ints(untouched.values())),
    }


async def derive(db: Connection, flows: Flows, numbers: Numbers) -> dict[str, Entries]:
    """The entries of some transactions, whole blocks, by table."""
    return {
        **of_flows(flows, numbers),
        "account_withdrawal": await _withdrawals(db, flows.withdrawals),
        "mint": _mints(flows.mints, await _named(db, flows.mints)),
        "label_tx": _labelled(flows.labels),
        "redeemer_tx": await _redeemers(db, flows.redeemed),
        "script_output": _scripts(flows),
    }


def of_flows(flows: Flows, numbers: Numbers) -> dict[str, Entries]:
    """The same, as far as they follow from outputs and inputs alone."""
    made, spent, unspent = flows.made, flows.spent, flows.spent_by < 0
    row, address_no = np.concatenate((made.row, spent.row)), np.concatenate((made.address_no, spent.address_no))
    account_no, credential_no = numbers.account_nos(address_no), numbers.credential_nos(address_no)
    known, of_made = account_no >= 0, account_no[: len(made.row)]
    credential_of_made = credential_no[: len(made.row)]
    return {
        "address_tx": _touched(flows.tx_id, row, address_no),
        "account_tx": _touched(flows.tx_id, row[known], account_no[known]),
        "credential_tx": _touched_by_others(flows.tx_id, row, address_no, credential_no),
        "asset_tx": _payments(flows),
        **_holdings(made, of_made, credential_of_made, unspent, numbers),
        "utxo": _unspent(made, of_made, credential_of_made, flows.tx_id[made.row], unspent),
        "stake": _balances(made, of_made, unspent),
        **_sent(spent, account_no[len(made.row) :], credential_no[len(made.row) :], numbers),
        "reference_output": _tokens(flows, numbers),
    }


def _touched(tx_id: Ints, row: Ints, number: Ints) -> Entries:
    """The addresses or accounts of each transaction, each of which counts once."""
    return _in_histories(tx_id, distinct(row << 32 | number))


def _touched_by_others(tx_id: Ints, row: Ints, address_no: Ints, credential_no: Ints) -> Entries:
    """The payment credentials of each transaction that has not their first addresses."""
    known = credential_no >= 0
    touched = distinct(row[known] << 32 | credential_no[known])
    return _in_histories(tx_id, touched[~np.isin(touched, row << 32 | address_no)])


def _in_histories(tx_id: Ints, touched: Ints) -> Entries:
    owner, by = touched & 0xFFFFFFFF, touched >> 32
    return Entries(owner, tx_id[by], key_of(owner) * weight_of(tx_id)[by] % PRIME, np.ones_like(owner))


def _payments(flows: Flows) -> Entries:
    """The assets in outputs, by transaction."""
    assets = flows.made.assets
    row = flows.made.row[assets.place]
    hashes = assets.key * weight_of(flows.tx_id)[row] % PRIME
    return Entries(assets.asset_no, flows.tx_id[row], hashes, assets.quantity)


def _holdings(
    made: OutputColumns, account_no: Ints, credential_no: Ints, unspent: Mask, numbers: Numbers
) -> dict[str, Entries]:
    """The assets in unspent outputs, by asset or policy, and by address, account or payment credential: an address
    without a stake credential is an account of its own, with the negative number.
    """
    held = unspent[made.assets.place]
    output = made.assets.place[held]
    asset_no, address_no, quantity = made.assets.asset_no[held], made.address_no[output], made.assets.quantity[held]
    policy_no = numbers.policy_nos(asset_no)
    owner_no = np.where(account_no[output] >= 0, account_no[output], -address_no)
    shared = credential_no[output] >= 0
    return {
        "credential_holder": _held(asset_no[shared], credential_no[output][shared], quantity[shared]),
        "holder": _held(asset_no, address_no, quantity),
        "policy_holder": _held(policy_no, address_no, quantity),
        "account_holder": _held(asset_no, owner_no, quantity),
        "policy_account_holder": _held(policy_no, owner_no, quantity),
    }


_HELD_FROM = 2**30
"""Added to the numbers of assets and policies, which owners then don't have: asset 5 at address 7 is not 7 at 5."""


def _held(held_no: Ints, owner_no: Ints, quantity: Words) -> Entries:
    return Entries(held_no, owner_no, key_of(held_no + _HELD_FROM) * key_of(owner_no) % PRIME, quantity)


def _balances(made: OutputColumns, account_no: Ints, unspent: Mask) -> Entries:
    """The lovelace in unspent outputs, by account."""
    known = unspent & (account_no >= 0)
    account_no = account_no[known]
    return Entries(account_no, np.zeros_like(account_no), key_of(account_no), made.lovelace[known])


def _sent(spent: OutputColumns, account_no: Ints, credential_no: Ints, numbers: Numbers) -> dict[str, Entries]:
    """What is spent from the addresses and accounts with long histories, and from other addresses of payment
    credentials than their first; lovelace as an asset with the number 0.
    """
    output = np.concatenate((np.arange(len(spent.row)), spent.assets.place))
    asset_no = np.concatenate((np.full(len(spent.row), LOVELACE_NO), spent.assets.asset_no))
    quantity = np.concatenate((spent.lovelace.astype(np.uint64), spent.assets.quantity))
    found = dict[str, Entries]()
    for table, owner_no, are_kept in (
        ("address_sent", spent.address_no, numbers.are_long_addresses(spent.address_no)),
        ("account_sent", account_no, numbers.are_long_accounts(account_no)),
        ("credential_sent", credential_no, credential_no >= 0),
    ):
        kept = are_kept[output]
        found[table] = _held(asset_no[kept], owner_no[output][kept], quantity[kept])
    return found


def _unspent(made: OutputColumns, account_no: Ints, credential_no: Ints, tx_id: Ints, unspent: Mask) -> Entries:
    """Unspent outputs, with a sum of what is in them."""
    held = sums_at(made.assets.key, made.assets.place, len(made.row))[unspent]
    tx_id, index, account_no = tx_id[unspent], made.index[unspent], account_no[unspent]
    lovelace = key_of(made.address_no[unspent]) * (made.lovelace[unspent] % PRIME + 1) % PRIME
    account = np.where(account_no >= 0, key_of(account_no), 0) * _ACCOUNT_FACTOR % PRIME
    credential_no = credential_no[unspent]
    credential = np.where(credential_no >= 0, key_of(credential_no), 0) * _CREDENTIAL_FACTOR % PRIME
    hashes = weight_of(tx_id) * (index + 1) % PRIME
    return Entries(tx_id, index, hashes, (lovelace + held + account + credential) % PRIME)


def _tokens(flows: Flows, numbers: Numbers) -> Entries:
    """The reference tokens in outputs, with the transaction that spent the output plus 2, or 1 for none."""
    made, assets = flows.made, flows.made.assets
    tokens = numbers.are_reference_tokens(assets.asset_no)
    output = assets.place[tokens]
    tx_id, index = flows.tx_id[made.row[output]], made.index[output]
    hashes = assets.key[tokens] * (weight_of(tx_id) * (index + 1) % PRIME) % PRIME
    return Entries(assets.asset_no[tokens], output_no(tx_id, index), hashes, flows.spent_by[output] + 2)


def _scripts(flows: Flows) -> Entries:
    """The outputs with a reference script, with the transaction that spent them plus 2, or 1 for none."""
    wanted = flows.script_outputs
    tx_id, index = ints([tx_id for tx_id, _ in wanted]), ints([index for _, index in wanted])
    place, known = places_in(output_no(flows.tx_id[flows.made.row], flows.made.index), output_no(tx_id, index))
    tx_id, index, spent_by = tx_id[known], index[known], flows.spent_by[place[known]]
    return Entries(tx_id, index, weight_of(tx_id) * (index + 1) % PRIME, spent_by + 2)


def _labelled(labels: Sequence[Labels]) -> Entries:
    """The labels of metadata, by transaction."""
    label_no = ints(chain.from_iterable([each.label_nos for each in labels]))
    tx_id = ints([each.tx_id for each in labels for _ in each.label_nos])
    return Entries(label_no, tx_id, key_of(label_no) * weight_of(tx_id) % PRIME, np.ones_like(label_no))


async def _redeemers(db: Connection, redeemed: Sequence[Redeemed]) -> Entries:
    """The scripts that redeemers are for, by their numbers in histories.sql, and transactions. Addresses of keys are
    locked by none.
    """
    addresses = list({address_no for each in redeemed for address_no in each.address_nos})
    locked_by = {row.address_no: row.script_key for row in await _scripts_of.all(db, addresses)} if addresses else {}
    found = [
        (script_key, each.tx_id)
        for each in redeemed
        for script_key in (*each.script_keys, *(locked_by.get(address_no) for address_no in each.address_nos))
        if script_key is not None
    ]
    script_no = ints([int.from_bytes(script_key[:8]) - (1 << 63) for script_key, _ in found])
    rest = ints([int.from_bytes(script_key[8:], signed=True) for script_key, _ in found])
    tx_id = ints([tx_id for _, tx_id in found])
    hashes = key_of(script_no) * weight_of(tx_id) % PRIME
    return Entries(script_no, tx_id, hashes, np.ones_like(script_no), rest % PRIME)


async def _withdrawals(db: Connection, withdrawals: Sequence[Withdrawal]) -> Entries:
    """Withdrawals, with a lovelace more, since they may be of 0."""
    names = list({each.account for each in withdrawals})
    known = {row.raw: row.stake_no for row in await _stakes.all(db, names)} if names else {}
    account_no = ints([known.get(each.account, _UNKNOWN) for each in withdrawals])
    tx_id = ints([each.tx_id for each in withdrawals])
    hashes = key_of(account_no) * weight_of(tx_id) % PRIME
    return entries.of_exact(account_no, tx_id, hashes, [each.lovelace + 1 for each in withdrawals])


def _mints(mints: Sequence[Mint], named: set[tuple[int, AssetNo]]) -> Entries:
    """Mints, with twice the quantity, plus 1 if metadata of the transaction describe the asset."""
    asset_no = ints(chain.from_iterable([mint.quantities for mint in mints]))
    tx_id = ints([mint.tx_id for mint in mints for _ in mint.quantities])
    quantities = [
        2 * quantity + ((mint.tx_id, asset_no) in named)
        for mint in mints
        for asset_no, quantity in mint.quantities.items()
    ]
    return entries.of_exact(asset_no, tx_id, key_of(asset_no) * weight_of(tx_id) % PRIME, quantities)


async def _named(db: Connection, mints: Sequence[Mint]) -> set[tuple[int, AssetNo]]:
    """The tx_ids and assets of the mints that the metadata of their transaction describe."""
    described = [mint for mint in mints if mint.extra.metadata_cbor or mint.extra.metadata_json]
    assets = set[AssetNo]().union(*(mint.quantities for mint in described))
    names = {found.asset_no: found for found in await _asset_names.all(db, list(assets))} if assets else {}
    found = set[tuple[int, AssetNo]]()
    for mint in described:
        described_assets = metadata.Described(mint.extra)
        for asset_no, quantity in mint.quantities.items():
            asset = names.get(asset_no)
            if quantity > 0 and asset is not None and described_assets.entry(asset.policy_id, asset.name) is not None:
                found.add((mint.tx_id, asset_no))
    return found


class _AssetName(msgspec.Struct, frozen=True):
    asset_no: AssetNo
    policy_id: bytes
    name: bytes


class _LockedBy(msgspec.Struct, frozen=True):
    address_no: AddressNo
    script_key: ScriptKey


class _Account(msgspec.Struct, frozen=True):
    raw: bytes
    stake_no: StakeNo


_UNKNOWN = 0  # numbers begin at 1
_sql = sql.beside(__file__)
_asset_names = _sql.query("asset_names", _AssetName)
_stakes = _sql.query("stakes", _Account)
_scripts_of = _sql.query("scripts_of", _LockedBy)
