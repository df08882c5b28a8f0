"""Name the entries in which two sides differ (entries.py)."""

from collections.abc import Mapping
from decimal import Decimal

import msgspec

from indexer.verify.results import MAX_SHOWN, Difference
from shared import packed, sql
from shared.ledger import LOVELACE_NO, AddressNo, LabelNo, label_numbered
from shared.sql import Connection

_Pair = tuple[int, int]
_Name = tuple[str, bytes | None]
"""The words for an entry, and the address or reward account that follows them."""


async def differences(
    db: Connection, table: str, stored: Mapping[_Pair, str], expected: Mapping[_Pair, str]
) -> list[Difference]:
    """The first entries of a table that are not as expected. Quantities are compared as texts: 5.00 is not 5."""
    wrong = sorted(pair for pair in stored.keys() | expected.keys() if stored.get(pair) != expected.get(pair))
    found = list[Difference]()
    for pair in wrong[:MAX_SHOWN]:
        indexed, recomputed = stored.get(pair), expected.get(pair)
        if table == "utxo":
            found.append(await _utxo(db, pair, is_expected=recomputed is not None))
        else:
            shown = (None if each is None else _show(table, pair, Decimal(each)) for each in (indexed, recomputed))
            found.append(Difference(*await _name(db, table, pair), *shown))
    return found


async def out_of_order(db: Connection, history: str, number: int) -> Difference:
    """That the entries of a history are not in order; `number` is that of its owner."""
    return Difference(*await _name(db, history, (number, 0)), "entries out of order, or of nothing", "in order")


async def _name(db: Connection, table: str, pair: _Pair) -> _Name:
    first, second = pair
    match table:
        case "address_tx":
            return _whose(f"{table} of", "address_no", first, await _address_of.one(db, first))
        case "credential_tx":
            return _whose(f"{table} of", "credential_no", first, await _address_of.one(db, first))
        case "account_tx" | "account_withdrawal":
            return _whose(f"{table} of", "stake_no", first, await _stake_of.one(db, first))
        case "label_tx" | "redeemer_tx":
            unsigned = label_numbered(LabelNo(first))
            label, script = f"label {unsigned}", f"script {unsigned.to_bytes(8).hex()}…"
            return f"{table} of {label if table == 'label_tx' else script}", None
        case "asset_tx" | "mint":
            return f"{table} of asset {await _asset_of.only(db, first)}", None
        case "holder":
            return f"asset {await _asset_of.only(db, first)} held by", await _address_of.one(db, second)
        case "credential_holder":
            whose = f"asset {await _asset_of.only(db, first)} held by the payment credential of"
            return whose, await _address_of.one(db, second)
        case "policy_holder":
            return f"policy {await _policy_of.only(db, first)} held by", await _address_of.one(db, second)
        case "account_holder":
            return f"asset {await _asset_of.only(db, first)} held by account_no {second}", await _account(db, second)
        case "policy_account_holder":
            return f"policy {await _policy_of.only(db, first)} held by account_no {second}", await _account(db, second)
        case "address_sent" | "account_sent" | "credential_sent":
            whose = "the payment credential of" if table == "credential_sent" else ""
            spender = _stake_of if table == "account_sent" else _address_of
            return f"{await _unit(db, first)} spent by {whose}".strip(), await spender.one(db, second)
        case "stake" | "address_count":
            raw, what = await _stake_of.one(db, first), "balance" if table == "stake" else table
            return f"{what} of stake credential {f'number {first}' if raw is None else raw.hex()}", None
        case "reference_output":
            where = f"output {second & 0xFFFF} of tx_id {second >> 16}"
            return f"spending of reference token number {first} in {where}", None
        case "script_output":
            return f"spending of the reference script in output {second} of tx_id {first}", None
    raise AssertionError(table)


def _show(table: str, pair: _Pair, quantity: Decimal) -> str:
    match table:
        case "address_tx" | "account_tx" | "credential_tx" | "label_tx":
            return f"tx_id {pair[1]}" if quantity == 1 else f"tx_id {pair[1]}, {quantity} times"
        case "redeemer_tx":  # beyond 64 bits: the second half of the key modulo PRIME, as often
            halves, times = divmod(int(quantity), 1 << 64)
            return f"tx_id {pair[1]}, {times} times, second half {halves // times}"
        case "asset_tx":
            return f"tx_id {pair[1]} with {quantity}"
        case "account_withdrawal":  # a lovelace more
            return f"tx_id {pair[1]} with {quantity - 1} lovelace"
        case "mint":  # twice the quantity, and 1 if it is named
            named = quantity % 2
            return f"tx_id {pair[1]} with {(quantity - named) / 2}{', named' if named else ''}"
        case "reference_output" | "script_output":  # the tx_id that spent it plus 2, or 1
            return str(max(quantity - 2, Decimal(0)))
    return str(quantity)


def _whose(what: str, owner_no: str, number: int, raw: bytes | None) -> _Name:
    return (f"{what} {owner_no} {number}" if raw is None else what), raw


async def _utxo(db: Connection, pair: _Pair, *, is_expected: bool) -> Difference:
    """NOTE: a block that has come since then may have spent a stored output."""
    tx_id, index = pair
    made, stored = await _made_by.one(db, tx_id), await _stored_output.one(db, *pair)
    output = None if made is None else _output(made, index)
    address_no = output.address_no if output else stored.address_no if stored else 0
    recomputed = None
    if output is not None and is_expected:
        numbers = await _numbers_of.one(db, output.address_no) or "stake_no , credential_no "
        asset_nos = "{" + ",".join(map(str, sorted(output.quantities))) + "}" if output.quantities else ""
        recomputed = f"{output.lovelace} lovelace, address_no {address_no}, {numbers}, asset_nos {asset_nos}"
    what = f"utxo {f'tx_id {tx_id}' if made is None else made.hash.hex()}#{index} of"
    return Difference(what, await _address_of.one(db, address_no), None if stored is None else stored.says, recomputed)


def _output(made: "_Made", index: int) -> packed.Output | None:
    """The output of a transaction or of the genesis at an index; None if it has none."""
    if made.outputs is None:
        return None if made.address_no is None else packed.Output(made.address_no, made.lovelace or 0)
    first_index, outputs = packed.unpack_outputs(made.outputs)
    return outputs[index - first_index] if 0 <= index - first_index < len(outputs) else None


async def _unit(db: Connection, asset_no: int) -> str:
    """Lovelace or an asset."""
    return "lovelace" if asset_no == LOVELACE_NO else f"asset {await _asset_of.only(db, asset_no)}"


async def _account(db: Connection, account_no: int) -> bytes | None:
    """An account: a stake credential, or an address without one, whose number is negative."""
    return await (_stake_of.one(db, account_no) if account_no > 0 else _address_of.one(db, -account_no))


class _Made(msgspec.Struct, frozen=True):
    hash: bytes
    outputs: bytes | None
    address_no: AddressNo | None
    lovelace: int | None


class _StoredOutput(msgspec.Struct, frozen=True):
    address_no: int
    says: str


_sql = sql.beside(__file__)
_asset_of = _sql.values("asset_of", str)
_policy_of = _sql.values("policy_of", str)
_stake_of = _sql.values("stake_of", bytes)
_address_of = _sql.values("address_of", bytes)
_numbers_of = _sql.values("numbers_of", str)
_made_by = _sql.query("made_by", _Made)
_stored_output = _sql.query("stored_output", _StoredOutput)
