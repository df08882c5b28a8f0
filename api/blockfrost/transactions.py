"""`/txs`: a transaction, its inputs and outputs, and its other parts."""

from collections.abc import AsyncIterator, Sequence
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
    `size` of a Byron transaction leaves out its witnesses. `mir_cert_count` is null: it is not kept.
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
    mir_cert_count: None
    delegation_count: int
    stake_cert_count: int
    pool_update_count: int
    pool_retire_count: int
    asset_mint_or_burn_count: int
    redeemer_count: int
    valid_contract: bool
    treasury_donation: str


class Input(msgspec.Struct, frozen=True):
    """A spent output. Address and amount are null if it precedes the first indexed block."""

    address: str | None
    amount: list[Amount] | None
    tx_hash: str
    output_index: int
    data_hash: str | None
    inline_datum: str | None
    reference_script_hash: str | None
    collateral: bool
    reference: bool = False


class Output(msgspec.Struct, frozen=True):
    """An output. `consumed_by_tx` is null while it is unspent."""

    address: str
    amount: list[Amount]
    output_index: int
    data_hash: str | None
    inline_datum: str | None
    collateral: bool
    reference_script_hash: str | None
    consumed_by_tx: str | None


class InputsAndOutputs(msgspec.Struct, frozen=True):
    """The inputs that a transaction spent and the outputs that it made.

    If its scripts failed, these are its collateral, which Blockfrost then does not mark as such.
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
        transaction = await read(db, ask)
        place = (await outputs.placed(db, [transaction.tx_hash]))[transaction.tx_hash]
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
        index=index_of(place.tx_id),
        output_amount=amounts.total(output.value for output in transaction.outputs),
        fees=_text(transaction.fee),
        deposit=_text(_deposit(transaction)),
        size=transaction.size if transaction.slot_no >= ask.network.byron_slots else _byron_size(transaction),
        invalid_before=_text(transaction.invalid_before),
        invalid_hereafter=_text(transaction.invalid_hereafter),
        utxo_count=len(transaction.inputs) + len(transaction.outputs),
        withdrawal_count=len(transaction.withdrawals),
        mir_cert_count=None,
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
    return [LabelledJson(label, _plain(value)) for label, value in await _labelled(ask)]


async def metadata_cbor(ask: ChainAsk[TransactionQuestion]) -> list[LabelledCbor]:
    """List the metadata of a transaction as CBOR: for each label, a map whose only key is that label."""
    return [_labelled_cbor(label, value) for label, value in await _labelled(ask)]


async def withdrawals(ask: ChainAsk[TransactionQuestion]) -> list[Withdrawal]:
    """List the withdrawals of rewards of a transaction."""
    async with ask.snapshot() as db:
        transaction = await read(db, ask)
    return [Withdrawal(withdrawal.stake_address, str(withdrawal.lovelace)) for withdrawal in transaction.withdrawals]


async def read(db: Connection, ask: ChainAsk[TransactionQuestion]) -> FullTransaction:
    """The transaction of a question, in a snapshot, with the lovelace of its inputs only. Raises Refusal."""
    row = await transactions.find(db, ask.question.hash)
    if row is None:
        raise errors.transaction_not_found()
    inputs = [_without_assets(spent) for spent in packed.unpack_spent(row.inputs)]
    return await transactions.full(db, row, ask.network, grouped=False, inputs=inputs)


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
    spent = [spending.tx_hash.hex() for spending in packed.unpack_spent(row.inputs)]
    sources = await outputs.placed(db, [transaction.tx_hash, *spent])
    spenders = await outputs.spenders(db, sources[transaction.tx_hash].tx_id)

    async def carried(made: Sequence[tuple[str, int]]) -> list[Carried]:
        return await contracts.carried(
            db, [(sources[tx_hash].attached if tx_hash in sources else None, index) for tx_hash, index in made]
        )

    async def inputs() -> AsyncIterator[Input]:
        async for some in transactions.input_batches(db, row.numbering, row.inputs, grouped=False):
            what = await carried([(source.tx_hash, source.output_index) for source in some])
            for source, its in zip(some, what, strict=True):
                yield _input(source, its)

    made = await carried([(transaction.tx_hash, output.output_index) for output in transaction.outputs])
    are_few = len(row.inputs) <= MAX_AT_ONCE_BYTES and len(spent) <= transactions.INPUTS_AT_ONCE
    return InputsAndOutputs(
        transaction.tx_hash,
        [shown async for shown in inputs()] if are_few else in_parts(inputs()),
        [
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
            for output, what in zip(transaction.outputs, made, strict=True)
        ],
    )


def _input(spent: transactions.Input, what: Carried) -> Input:
    return Input(
        address=spent.address,
        amount=None if spent.value is None else amounts.from_value(spent.value),
        tx_hash=spent.tx_hash,
        output_index=spent.output_index,
        data_hash=what.data_hash,
        inline_datum=what.inline_datum,
        reference_script_hash=what.reference_script_hash,
        collateral=False,
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


def _plain(value: LabelMetadata) -> Any:
    if value.json is msgspec.UNSET:
        return None
    try:
        return plain.of_detailed(msgspec.json.decode(value.json))
    except ValueError:  # keys nested too deeply in keys
        return None


def _labelled_cbor(label: str, value: LabelMetadata) -> LabelledCbor:
    if value.cbor is msgspec.UNSET:
        return LabelledCbor(label, None, None)
    whole = f"a1{cbor2.dumps(int(label)).hex()}{value.cbor}"
    return LabelledCbor(label, f"\\x{whole}", whole)
