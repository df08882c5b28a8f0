"""`/txs`: a transaction, its inputs and outputs, and its other parts."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Annotated, Any

import cbor2
import msgspec

from api import errors
from api.ask import ChainAsk
from api.blockfrost import amounts, byron_size, outputs, plain
from api.blockfrost.amounts import Amount
from api.chain import contracts, transactions, utxos
from api.chain.contracts import Carried
from api.chain.transactions import FoundTransaction, FullTransaction, LabelMetadata, Value
from api.http.bodies import MAX_AT_ONCE_BYTES, in_parts
from api.parameters import Hex, Question
from shared import address, packed
from shared.ledger import index_of
from shared.network import Network
from shared.sql import Connection


class TransactionQuestion(Question, frozen=True, kw_only=True):
    """A transaction by its hash."""

    hash: Annotated[bytes, Hex(32, message=errors.invalid_transaction_hash)]


class Transaction(msgspec.Struct, frozen=True):
    """A transaction. `block_time` is in seconds since 1970, `index` its position in the block.

    `deposit` is inputs and withdrawals minus outputs, fee and donation, and is negative if more deposits were returned
    than paid. It is 0 if scripts failed, and null if an input precedes the first indexed block.
    `size` of a Byron transaction leaves out its witnesses. `mir_cert_count` counts the pots from which it
    moves instantaneous rewards to accounts, as with Blockfrost, not the certificates; it is null if these are unknown.
    """

    hash: str
    block: str
    block_height: int
    block_time: int
    slot: int
    index: int
    output_amount: list[Amount]
    fees: str | None
    deposit: str | None
    size: int | None
    invalid_before: str | None
    invalid_hereafter: str | None
    utxo_count: int
    withdrawal_count: int
    mir_cert_count: int | None
    delegation_count: int
    stake_cert_count: int
    pool_update_count: int
    pool_retire_count: int
    asset_mint_or_burn_count: int
    redeemer_count: int
    valid_contract: bool
    treasury_donation: str


class Input(msgspec.Struct, frozen=True):
    """A spent output, one that is only read (`reference`), or one that failed scripts would have cost (`collateral`).

    Address and amount are null if it precedes the first indexed block.
    """

    address: str | None
    amount: list[Amount] | None
    tx_hash: str
    output_index: int
    data_hash: str | None
    inline_datum: str | None
    reference_script_hash: str | None
    collateral: bool
    reference: bool


class Output(msgspec.Struct, frozen=True):
    """An output, or the change that failed scripts would have left of the `collateral`.

    `consumed_by_tx` is null while it is unspent.
    """

    address: str
    amount: list[Amount]
    output_index: int
    data_hash: str | None
    inline_datum: str | None
    collateral: bool
    reference_script_hash: str | None
    consumed_by_tx: str | None


class InputsAndOutputs(msgspec.Struct, frozen=True):
    """The inputs of a transaction, those that it only reads first, its collateral last; and its outputs.

    If its scripts failed, these are the collateral that it spent and its change, which Blockfrost then does not mark as
    such.
    """

    hash: str
    inputs: list[Input]
    outputs: list[Output]


class LabelledJson(msgspec.Struct, frozen=True):
    """Metadata under one label as plain JSON; null if it is not metadata, or nested too deeply."""

    label: str
    json_metadata: Any


class LabelledCbor(msgspec.Struct, frozen=True):
    """Metadata under one label as CBOR in hex; `cbor_metadata`, the older field, has the prefix `\\x`.

    Both are null if the node sends no CBOR.
    """

    label: str
    cbor_metadata: str | None
    metadata: str | None


class Withdrawal(msgspec.Struct, frozen=True):
    """Rewards withdrawn from an account."""

    address: str
    amount: str


async def info(ask: ChainAsk[TransactionQuestion]) -> Transaction:
    """Get a transaction by hash."""
    async with ask.snapshot() as db:
        row = await find(db, ask)
        transaction = await without_assets_of_inputs(db, row, ask.network)
    moved = packed.unpack_extra(row.extra).instantaneous_rewards
    kinds = [certificate.type for certificate in transaction.certificates]
    delegations = sum(
        certificate.pool_id is not msgspec.UNSET
        for certificate in transaction.certificates
        if certificate.type == "stakeDelegation"
    )
    return Transaction(
        hash=transaction.tx_hash,
        block=transaction.block_hash,
        block_height=transaction.block_no,
        block_time=int(transaction.block_time.timestamp()),
        slot=transaction.slot_no,
        index=index_of(row.tx_id),
        output_amount=amounts.total(output.value for output in transaction.outputs),
        fees=_text(transaction.fee),
        deposit=_text(_deposit(transaction)),
        size=transaction.size if transaction.slot_no >= ask.network.byron_slots else _byron_size(transaction),
        invalid_before=_text(transaction.invalid_before),
        invalid_hereafter=_text(transaction.invalid_hereafter),
        utxo_count=len(transaction.inputs) + len(transaction.outputs),
        withdrawal_count=len(transaction.withdrawals),
        mir_cert_count=None if moved is None else len({each.pot_no for each in moved if each.amounts}),
        delegation_count=delegations,
        stake_cert_count=kinds.count("stakeCredentialRegistration") + kinds.count("stakeCredentialDeregistration"),
        pool_update_count=kinds.count("stakePoolRegistration"),
        pool_retire_count=kinds.count("stakePoolRetirement"),
        asset_mint_or_burn_count=len(transaction.mint),
        redeemer_count=transaction.redeemer_count,
        valid_contract=transaction.valid,
        treasury_donation=str(transaction.treasury_donation),
    )


async def inputs_and_outputs(ask: ChainAsk[TransactionQuestion]) -> InputsAndOutputs:
    """Get the inputs and outputs of a transaction, or the output of a genesis transaction."""
    tx_hash = ask.question.hash
    async with ask.snapshot() as db:
        row = await transactions.find(db, tx_hash)
        if row is not None:
            return await ask.written(await _shown(db, row, ask.network))
        genesis = await utxos.read(db, tx_hash, 0, ask.network)
    if genesis is None:
        raise errors.transaction_not_found()
    spent_by = None if genesis.spent_by is None else genesis.spent_by.tx_hash
    made = Output(genesis.address, amounts.from_value(genesis.value), 0, None, None, False, None, spent_by)
    return InputsAndOutputs(tx_hash.hex(), [], [made])


async def metadata(ask: ChainAsk[TransactionQuestion]) -> list[LabelledJson]:
    """List the metadata of a transaction as plain JSON."""
    return [LabelledJson(label, plain_of(value)) for label, value in await _labelled(ask)]


async def metadata_cbor(ask: ChainAsk[TransactionQuestion]) -> list[LabelledCbor]:
    """List the metadata of a transaction as CBOR: for each label, a map whose only key is that label."""
    return [labelled_cbor(label, value) for label, value in await _labelled(ask)]


async def withdrawals(ask: ChainAsk[TransactionQuestion]) -> list[Withdrawal]:
    """List the withdrawals of rewards of a transaction."""
    async with ask.snapshot() as db:
        transaction = await read(db, ask)
    return [Withdrawal(withdrawal.stake_address, str(withdrawal.lovelace)) for withdrawal in transaction.withdrawals]


async def read(db: Connection, ask: ChainAsk[TransactionQuestion]) -> FullTransaction:
    """The transaction of a question, in a snapshot, with the lovelace of its inputs only. Raises Refusal."""
    return await without_assets_of_inputs(db, await find(db, ask), ask.network)


async def find(db: Connection, ask: ChainAsk[TransactionQuestion]) -> FoundTransaction:
    """The row of the transaction of a question. Raises Refusal."""
    row = await transactions.find(db, ask.question.hash)
    if row is None:
        raise errors.transaction_not_found()
    return row


async def without_assets_of_inputs(db: Connection, row: FoundTransaction, network: Network) -> FullTransaction:
    """A transaction, with the lovelace of its inputs only."""
    inputs = [_without_assets(spent) for spent in packed.unpack_spent(row.inputs)]
    return await transactions.full(db, row, network, grouped=False, inputs=inputs)


async def _labelled(ask: ChainAsk[TransactionQuestion]) -> list[tuple[str, LabelMetadata]]:
    """The metadata of a transaction by label; as with Blockfrost, none if its scripts failed."""
    async with ask.snapshot() as db:
        transaction = await read(db, ask)
    return sorted(transaction.metadata.items(), key=lambda item: int(item[0])) if transaction.valid else []


def _without_assets(spent: packed.Spent) -> transactions.Input:
    value = None if spent.source is None else Value(spent.source.lovelace)
    return transactions.Input(spent.tx_hash.hex(), spent.output_index, None, value)


async def _shown(db: Connection, row: FoundTransaction, network: Network) -> InputsAndOutputs:
    transaction = await transactions.full(db, row, network, grouped=False, inputs=[])
    spent = [spending.tx_hash for spending in packed.unpack_spent(row.inputs)]
    sources, spenders = await outputs.before_and_after(db, row.tx_id, spent, row.tip_hash)
    named = packed.unpack_referred(row.referred)
    carried = await contracts.carried(db, [(row.attached, output.output_index) for output in transaction.outputs])
    count = len(named.references) + len(spent) + len(named.collaterals)
    are_few = len(row.inputs) <= MAX_AT_ONCE_BYTES and count <= transactions.INPUTS_AT_ONCE
    made = [
        Output(
            address=output.address,
            amount=amounts.from_value(output.value),
            output_index=output.output_index,
            data_hash=what.data_hash,
            inline_datum=what.inline_datum,
            collateral=False,
            reference_script_hash=what.reference_script_hash,
            consumed_by_tx=spenders.get(output.output_index),
        )
        for output, what in zip(transaction.outputs, carried, strict=True)
    ]
    if named.returned is not None:
        made.append(_returned(named.returned, transaction))
    return InputsAndOutputs(
        transaction.tx_hash,
        await _few_inputs(db, row, named, sources) if are_few else in_parts(_many_inputs(db, row, named, sources)),
        made,
    )


class _Entry(msgspec.Struct, frozen=True):
    """An input or what a transaction names, and what the outputs of its transaction carry, packed."""

    source: packed.Input
    attached: bytes | None
    collateral: bool = False
    reference: bool = False


async def _few_inputs(
    db: Connection, row: FoundTransaction, named: packed.References, sources: Mapping[bytes, bytes]
) -> list[Input]:
    """All inputs of a transaction, at once."""
    found = await outputs.named(db, [*named.references, *named.collaterals]) if row.referred is not None else []
    references, collaterals = found[: len(named.references)], found[len(named.references) :]
    return await _entries(
        db,
        row,
        [
            *(_Entry(each.output, each.attached, reference=True) for each in references),
            *(_Entry(spent, _attached(spent, sources)) for spent in packed.unpack_inputs(row.inputs)),
            *(_Entry(each.output, each.attached, collateral=True) for each in collaterals),
        ],
    )


async def _many_inputs(
    db: Connection, row: FoundTransaction, named: packed.References, sources: Mapping[bytes, bytes]
) -> AsyncIterator[Input]:
    """The same, some at a time."""
    for some in _parts(named.references):
        found = await outputs.named(db, some)
        for shown in await _entries(db, row, [_Entry(each.output, each.attached, reference=True) for each in found]):
            yield shown
    for spent in transactions.input_parts(row.inputs):
        for shown in await _entries(db, row, [_Entry(each, _attached(each, sources)) for each in spent]):
            yield shown
    for some in _parts(named.collaterals):
        found = await outputs.named(db, some)
        for shown in await _entries(db, row, [_Entry(each.output, each.attached, collateral=True) for each in found]):
            yield shown


def _parts(named: Sequence[packed.Referred]) -> Iterator[Sequence[packed.Referred]]:
    for at in range(0, len(named), transactions.INPUTS_AT_ONCE):
        yield named[at : at + transactions.INPUTS_AT_ONCE]


def _attached(spent: packed.Input, sources: Mapping[bytes, bytes]) -> bytes | None:
    return sources.get(spent.tx_hash)


async def _entries(db: Connection, row: FoundTransaction, entries: Sequence[_Entry]) -> list[Input]:
    shown = await transactions.shown_inputs(db, row.numbering, [each.source for each in entries], grouped=False)
    carried = await contracts.carried(db, [(each.attached, each.source.output_index) for each in entries])
    return [_input(*each) for each in zip(entries, shown, carried, strict=True)]


def _input(entry: _Entry, source: transactions.Input, what: Carried) -> Input:
    """An input. As with Blockfrost, collateral has neither assets nor a reference script."""
    value = source.value
    if value is not None:
        value = Value(value.lovelace) if entry.collateral else value
    return Input(
        address=source.address,
        amount=None if value is None else amounts.from_value(value),
        tx_hash=source.tx_hash,
        output_index=source.output_index,
        data_hash=what.data_hash,
        inline_datum=what.inline_datum,
        reference_script_hash=None if entry.collateral else what.reference_script_hash,
        collateral=entry.collateral,
        reference=entry.reference,
    )


def _returned(returned: packed.Returned, transaction: FullTransaction) -> Output:
    """The collateral return, which comes after the declared outputs."""
    to, place = returned.address, len(transaction.outputs)
    return Output(
        address=transaction.outputs[to].address if isinstance(to, int) else address.show(to),
        amount=amounts.from_value(Value(returned.lovelace)),
        output_index=place,
        data_hash=None,
        inline_datum=None,
        collateral=True,
        reference_script_hash=None,
        consumed_by_tx=None,
    )


def _deposit(transaction: FullTransaction) -> int | None:
    """What a transaction paid beyond outputs, fee and donation, below 0 if it got deposits back; None if unknown."""
    if not transaction.valid:
        return 0
    spent: list[Value] = [source.value for source in transaction.inputs if source.value is not None]
    if transaction.fee is None or len(spent) < len(transaction.inputs):
        return None
    paid = sum(value.lovelace for value in spent) + sum(withdrawal.lovelace for withdrawal in transaction.withdrawals)
    made = sum(output.value.lovelace for output in transaction.outputs)
    return paid - made - transaction.fee - transaction.treasury_donation


def _byron_size(transaction: FullTransaction) -> int:
    paid = [(address.of_node(output.address), output.value.lovelace) for output in transaction.outputs]
    return byron_size.size_bytes([spent.output_index for spent in transaction.inputs], paid)


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def plain_of(value: LabelMetadata) -> Any:
    """Metadata under one label as plain JSON; None if it is not metadata, or nested too deeply."""
    if value.json is msgspec.UNSET:
        return None
    try:
        return plain.of_detailed(msgspec.json.decode(value.json))
    except ValueError:  # keys nested too deeply in keys
        return None


def labelled_cbor(label: str, value: LabelMetadata) -> LabelledCbor:
    """Metadata under one label as CBOR."""
    if value.cbor is msgspec.UNSET:
        return LabelledCbor(label, None, None)
    whole = f"a1{cbor2.dumps(int(label)).hex()}{value.cbor}"
    return LabelledCbor(label, f"\\x{whole}", whole)
