"""`/mempool`: the transactions that wait in the node's mempool, wherever they were submitted."""

from collections.abc import Callable, Iterable, Mapping
from uuid import UUID

import msgspec
from msgspec import UNSET, UnsetType

from api import errors
from api.ask import ChainAsk
from api.blockfrost import addresses, amounts
from api.blockfrost.amounts import LOVELACE, Amount, unit_of
from api.blockfrost.paging import Page
from api.blockfrost.transactions import TransactionQuestion
from api.chain import names, tip, transaction_cbor
from api.chain.owners import OwnerKind
from api.chain.transactions import Address
from api.node_bytes.lanes import not_read
from api.node_bytes.mempool import MempoolReader, Output, Redeemer, Reference, WaitingTransaction
from api.sources.nodes import NodeAway
from shared import address, packed, sql
from shared.cbor import Malformed
from shared.ledger import SCRIPT_LANGUAGES, datum_hash_of, script_hash_of
from shared.sql import Connection

_PURPOSES = {"publish": "cert", "withdraw": "reward"}
_REGISTRATIONS = ("stakeCredentialRegistration", "stakeCredentialDeregistration")
_ADA = "ada"


class OfAddress(Page, frozen=True, kw_only=True):
    """A page of the transactions of an address or of a payment credential."""

    address: Address


class Waiting(msgspec.Struct, frozen=True):
    """A transaction that waits."""

    tx_hash: str


class Transaction(msgspec.Struct, frozen=True):
    """A transaction that waits. Its fields are those of one in a block.

    `deposit` is null if it spends an output that neither the index nor the mempool has.
    """

    hash: str
    output_amount: list[Amount]
    fees: str
    deposit: str | None
    size: int
    invalid_before: str | None
    invalid_hereafter: str | None
    utxo_count: int
    withdrawal_count: int
    mir_cert_count: int
    delegation_count: int
    stake_cert_count: int
    pool_update_count: int
    pool_retire_count: int
    asset_mint_or_burn_count: int
    redeemer_count: int
    valid_contract: bool


class Input(msgspec.Struct, frozen=True):
    """An output that it spends or reads; `address` is absent if neither the index nor the mempool has it."""

    address: str | UnsetType
    tx_hash: str
    output_index: int
    collateral: bool
    reference: bool


class MadeOutput(msgspec.Struct, frozen=True):
    """An output. A native `reference_script_hash` is null unless Ogmios runs with `--include-script-cbor`; one of an
    unknown language is null.
    """

    address: str
    amount: list[Amount]
    output_index: int
    data_hash: str | None
    inline_datum: str | None
    collateral: bool
    reference_script_hash: str | None


class WaitingRedeemer(msgspec.Struct, frozen=True):
    """A redeemer."""

    tx_index: int
    purpose: str
    unit_mem: str
    unit_steps: str


class Content(msgspec.Struct, frozen=True):
    """A transaction that waits, with its inputs, outputs and redeemers."""

    tx: Transaction
    inputs: list[Input]
    outputs: list[MadeOutput]
    redeemers: list[WaitingRedeemer]


class _Source(msgspec.Struct, frozen=True):
    """An output that is spent: its address as text, and its lovelace."""

    address: str
    lovelace: int


class _MadeRow(msgspec.Struct, frozen=True):
    tx_hash: bytes
    numbering: UUID
    outputs: bytes | None
    genesis_address: bytes | None
    genesis_lovelace: int | None


_sql = sql.beside(__file__)
_made = _sql.query("made", _MadeRow)


async def listed(ask: ChainAsk[Page]) -> list[Waiting]:
    """List the transactions in the node's mempool."""
    reader = await _reader(ask)
    try:
        hashes = await reader.hashes(ask.key.credential_id)
    except NodeAway as cause:
        raise not_read(cause) from cause
    return _page(ask.question, hashes)


async def of_address(ask: ChainAsk[OfAddress]) -> list[Waiting]:
    """List the transactions in the node's mempool that spend from an address or pay to it."""
    is_wanted = _wanted(*addresses.owner_of(ask.question.address, ask.network))
    waiting = await _transactions(ask)
    sources = await _sources(ask, waiting, (each for tx in waiting for each in _spent(tx)))
    return _page(
        ask.question,
        [
            tx.id
            for tx in waiting
            if any(is_wanted(output.address) for output in _made_by(tx))
            or any(reference in sources and is_wanted(sources[reference].address) for reference in _spent(tx))
        ],
    )


def _wanted(owner: OwnerKind, raw: bytes) -> Callable[[str], bool]:
    """Whether an address, as the node writes it, is this one, or has this hash in its payment part."""
    if owner == "address":
        shown = address.show(raw)
        return lambda text: text == shown

    def has_hash(text: str) -> bool:
        try:
            return address.payment_hash_of(address.of_node(text)) == raw
        except ValueError as cause:
            raise errors.node_not_read(f"an address of a transaction can't be read: {cause}") from cause

    return has_hash


async def info(ask: ChainAsk[TransactionQuestion]) -> Content:
    """Get a transaction in the node's mempool."""
    tx_hash = ask.question.hash.hex()
    waiting = await _transactions(ask)
    tx = next((each for each in waiting if each.id == tx_hash), None)
    if tx is None:
        raise errors.transaction_not_found()
    if tx.cbor is None:
        raise errors.cbor_not_sent()
    uses = [each.reference for each in (*tx.inputs, *tx.collaterals, *tx.references)]
    sources = await _sources(ask, waiting, uses)
    return Content(
        tx=_shown(tx, tx.cbor, sources),
        inputs=[
            Input(
                address=sources[used.reference].address if used.reference in sources else UNSET,
                tx_hash=used.reference.tx_hash,
                output_index=used.reference.output_index,
                collateral=kind == "collateral",
                reference=kind == "reference",
            )
            for kind, listed in (("spent", tx.inputs), ("collateral", tx.collaterals), ("reference", tx.references))
            for used in listed
        ],
        outputs=[_shown_output(*each) for each in _outputs(tx)],
        redeemers=[_shown_redeemer(each) for each in tx.redeemers],
    )


async def _reader(ask: ChainAsk[Page] | ChainAsk[OfAddress] | ChainAsk[TransactionQuestion]) -> MempoolReader:
    """The reader of the node's mempool. Raises Refusal, also if the network is not served yet."""
    async with ask.connection() as db:
        await tip.read(db)
    ask.notes.may_change = True
    return ask.services.node_readers.mempool(ask.network)


async def _transactions(ask: ChainAsk[OfAddress] | ChainAsk[TransactionQuestion]) -> list[WaitingTransaction]:
    reader = await _reader(ask)
    try:
        return await reader.transactions(ask.key.credential_id)
    except NodeAway as cause:
        raise not_read(cause) from cause


def _page(asked: Page, hashes: list[str]) -> list[Waiting]:
    in_order = hashes if asked.order == "asc" else hashes[::-1]
    return [Waiting(each) for each in in_order[asked.offset : asked.offset + asked.count]]


def _spent(tx: WaitingTransaction) -> list[Reference]:
    """The references of the outputs that it spends."""
    return [each.reference for each in (tx.inputs if tx.spends == "inputs" else tx.collaterals)]


def _outputs(tx: WaitingTransaction) -> list[tuple[int, Output, bool]]:
    """Its outputs with their indexes, and whether each returns collateral: that one is made only if scripts fail."""
    returned = [] if tx.collateral_return is None else [(len(tx.outputs), tx.collateral_return, True)]
    return [(index, output, False) for index, output in enumerate(tx.outputs)] + returned


def _made_by(tx: WaitingTransaction) -> list[Output]:
    """The outputs that it makes."""
    return [output for _, output, returns_collateral in _outputs(tx) if returns_collateral == (tx.spends != "inputs")]


async def _sources(
    ask: ChainAsk[OfAddress] | ChainAsk[TransactionQuestion],
    waiting: Iterable[WaitingTransaction],
    wanted: Iterable[Reference],
) -> Mapping[Reference, _Source]:
    """The outputs with these references, of the mempool or the index; unknown ones are omitted."""
    in_mempool = {tx.id: tx for tx in waiting}
    found: dict[Reference, _Source] = {}
    indexed: list[Reference] = []
    for reference in wanted:
        tx = in_mempool.get(reference.tx_hash)
        if tx is None:
            indexed.append(reference)
        elif reference.output_index < len(tx.outputs):
            output = tx.outputs[reference.output_index]
            found[reference] = _Source(output.address, output.value[_ADA]["lovelace"])

    async def read() -> Mapping[Reference, _Source]:
        async with ask.connection() as db:
            return await _indexed(db, indexed)

    return found | dict(await names.until_consistent(read)) if indexed else found


async def _indexed(db: Connection, wanted: list[Reference]) -> Mapping[Reference, _Source]:
    """The outputs of the index with these references. Raises Renumbered."""
    rows = {row.tx_hash.hex(): row for row in await _made.all(db, [*{bytes.fromhex(each.tx_hash) for each in wanted}])}
    outputs: dict[Reference, packed.Output] = {}
    found: dict[Reference, _Source] = {}
    for reference in wanted:
        row = rows.get(reference.tx_hash)
        if row is None:
            continue
        if row.outputs is not None:
            output = packed.unpack_output_at(row.outputs, reference.output_index)
            if output is not None:
                outputs[reference] = output
        elif row.genesis_address is not None and row.genesis_lovelace is not None and not reference.output_index:
            found[reference] = _Source(address.show(row.genesis_address), row.genesis_lovelace)
    if outputs:
        numbering = next(iter(rows.values())).numbering
        shown = await names.resolve(db, numbering, [packed.Output(each.address_no, 0) for each in outputs.values()])
        for reference, output in outputs.items():
            found[reference] = _Source(shown.addresses[output.address_no], output.lovelace)
    return found


def _shown(tx: WaitingTransaction, cbor: str, sources: Mapping[Reference, _Source]) -> Transaction:
    kinds = [each.type for each in tx.certificates]
    made = _made_by(tx)
    total: dict[str, int] = {LOVELACE: 0}
    for output in made:
        for unit, quantity in _quantities(output).items():
            total[unit] = total.get(unit, 0) + quantity
    fee = tx.fee.get(_ADA, {}).get("lovelace", 0)
    spent = _spent(tx)
    deposit: int | None = 0
    if tx.spends == "inputs":
        withdrawn = sum(each.ada.lovelace for each in tx.withdrawals.values())
        known = [sources[each].lovelace for each in spent if each in sources]
        deposit = sum(known) + withdrawn - total[LOVELACE] - fee if len(known) == len(spent) else None
    return Transaction(
        hash=tx.id,
        output_amount=amounts.shown(total),
        fees=str(fee),
        deposit=_text(deposit),
        size=_size(cbor),
        invalid_before=_text(tx.validity_interval.invalid_before),
        invalid_hereafter=_text(tx.validity_interval.invalid_after),
        utxo_count=len(spent) + len(made),
        withdrawal_count=len(tx.withdrawals),
        mir_cert_count=0,  # Conway has none, and no node has a mempool of an earlier era
        delegation_count=sum(
            each.type == "stakeDelegation" and each.stake_pool is not None for each in tx.certificates
        ),
        stake_cert_count=sum(map(kinds.count, _REGISTRATIONS)),
        pool_update_count=kinds.count("stakePoolRegistration"),
        pool_retire_count=kinds.count("stakePoolRetirement"),
        asset_mint_or_burn_count=sum(map(len, tx.mint.values())),
        redeemer_count=len(tx.redeemers),
        valid_contract=tx.spends == "inputs",
    )


def _size(cbor: str) -> int:
    """The size in bytes as the ledger counts it. Raises Refusal."""
    try:
        return transaction_cbor.contents(bytes.fromhex(cbor)).size_bytes
    except (Malformed, ValueError) as cause:
        raise errors.node_not_read(f"its bytes of the transaction can't be read: {cause}") from cause


def _shown_output(index: int, output: Output, returns_collateral: bool) -> MadeOutput:
    data_hash = output.datum_hash
    if output.datum is not None:
        data_hash = datum_hash_of(bytes.fromhex(output.datum)).hex()
    return MadeOutput(
        address=output.address,
        amount=amounts.shown(_quantities(output)),
        output_index=index,
        data_hash=data_hash,
        inline_datum=output.datum,
        collateral=returns_collateral,
        reference_script_hash=_script_hash(output),
    )


def _script_hash(output: Output) -> str | None:
    script = output.script
    if script is None or script.cbor is None or script.language not in SCRIPT_LANGUAGES:
        return None
    return script_hash_of(SCRIPT_LANGUAGES.index(script.language), bytes.fromhex(script.cbor)).hex()


def _shown_redeemer(found: Redeemer) -> WaitingRedeemer:
    purpose, units = found.validator.purpose, found.execution_units
    return WaitingRedeemer(found.validator.index, _PURPOSES.get(purpose, purpose), str(units.memory), str(units.cpu))


def _quantities(output: Output) -> dict[str, int]:
    """The value of an output by Blockfrost's units."""
    return {
        LOVELACE if policy == _ADA else unit_of(policy, name): quantity
        for policy, held in output.value.items()
        for name, quantity in held.items()
    }


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)
