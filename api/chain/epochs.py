"""Epochs: their times, blocks, sums and protocol parameters."""

import re
from collections.abc import Sequence
from typing import Annotated

import msgspec

from api import errors
from api.answers import ChainAnswer, Digits, Instant, Json
from api.ask import ChainAsk
from api.chain import cardano_cli, tip
from api.chain.tip import Tip
from api.parameters import JsonSchema, Kind, Question
from api.repeats import kept
from shared import sql
from shared.network import Network

LATEST = "latest"
_NUMBER = re.compile(r"[0-9]{1,9}")


class EpochKind(Kind[int | None]):
    """An epoch: its number, or None for `latest`."""

    def __init__(self) -> None:
        schema: JsonSchema = {"type": "string", "pattern": f"^({_NUMBER.pattern}|{LATEST})$"}
        super().__init__(f"an epoch number or `{LATEST}`", schema)

    def of_text(self, text: str) -> int | None:
        if text == LATEST:
            return None
        if not _NUMBER.fullmatch(text):
            raise ValueError(text)
        return int(text)


class EpochQuestion(Question, frozen=True, kw_only=True):
    """An epoch."""

    epoch: Annotated[int | None, EpochKind()]


class EpochBlock(msgspec.Struct, frozen=True):
    """The first or the last indexed block of an epoch."""

    block_hash: str
    block_no: int
    slot_no: int
    block_time: Instant


class Epoch(msgspec.Struct, frozen=True):
    """An epoch: its slots and times, and its indexed blocks.

    `end_time` is the start of the next epoch. `fees` and `output` are lovelace: the known fees of its transactions, and
    their outputs including change.
    """

    epoch_no: int
    start_time: Instant
    end_time: Instant
    first_slot_no: int
    last_slot_no: int
    block_count: int
    tx_count: int
    fees: Digits
    output: Digits
    first_block: EpochBlock
    last_block: EpochBlock


class EpochParameters(msgspec.Struct, frozen=True):
    """The protocol parameters of an epoch, twice.

    `ogmios` has the names and formats of Ogmios 7, in which ratios are texts such as `577/10000`. `cardano_cli` has
    those of `cardano-cli query protocol-parameters`, in which a ratio is a number with all its digits or, if its
    decimal form is infinite, an object with `numerator` and `denominator`. `nonce` is the randomness of the epoch's
    leader elections; null if it is neutral, or if the node did not tell it.
    """

    epoch_no: int
    ogmios: Json
    cardano_cli: Json
    nonce: str | None


class StoredParameters(msgspec.Struct, frozen=True):
    """The parameters of an epoch as Ogmios writes them, and its nonce if it is known."""

    parameters: str
    nonce: bytes | None


class _ParametersRow(msgspec.Struct, frozen=True):
    tip_hash: bytes
    parameters: str | None
    nonce: bytes | None


class _EpochRow(msgspec.Struct, frozen=True):
    tip_hash: bytes
    tip_block_no: int
    epoch_no: int
    blocks: int
    tx_count: int
    fees: int
    output: str
    first_slot_no: int
    first_block_no: int
    first_hash: bytes
    last_slot_no: int
    last_block_no: int
    last_hash: bytes


_sql = sql.beside(__file__)
_parameters = _sql.query("parameters", _ParametersRow)
_epochs = _sql.query("epochs", _EpochRow)


async def get_epoch(ask: ChainAsk[EpochQuestion]) -> ChainAnswer[Epoch]:
    """Get an epoch by number, or the latest one."""
    async with ask.snapshot() as db:
        last, row = await _found(db, ask)
    return ChainAnswer(data=_show(row, ask.network), last_updated=last.last_updated(ask.network))


async def get_epoch_parameters(ask: ChainAsk[EpochQuestion]) -> ChainAnswer[EpochParameters]:
    """Get the protocol parameters of an epoch.

    They are known for each epoch in which the index followed the node's tip.
    """
    last, epoch_no, stored = await read_parameters(ask)
    parameters = stored.parameters.encode()
    nonce = None if stored.nonce is None else stored.nonce.hex()
    return ChainAnswer(
        data=EpochParameters(epoch_no, msgspec.Raw(parameters), cardano_cli.parameters(parameters), nonce),
        last_updated=last.last_updated(ask.network),
    )


async def read_parameters(ask: ChainAsk[EpochQuestion]) -> tuple[Tip, int, StoredParameters]:
    """The tip, the number of the requested epoch, and its parameters. Raises Refusal 404 and 503."""
    async with ask.snapshot() as db:
        last, row = await _found(db, ask)
        stored = await _parameters.only(db, row.epoch_no)
        kept.require_same(db, stored.tip_hash == row.tip_hash)
    if stored.parameters is None:
        raise errors.parameters_not_known()
    return last, row.epoch_no, StoredParameters(stored.parameters, stored.nonce)


async def some(db: sql.Connection, numbers: Sequence[int], network: Network) -> list[Epoch]:
    """Those of some epochs, ascending, that have an indexed block, in a snapshot."""
    return [_show(row, network) for row in await _read(db, numbers, network)]


async def _found(db: sql.Connection, ask: ChainAsk[EpochQuestion]) -> tuple[Tip, _EpochRow]:
    """The tip, and the requested epoch. Raises Refusal 404 and 503."""
    network, asked = ask.network, ask.question.epoch
    last = await tip.read(db)
    epoch_no = network.epoch_of(last.slot_no) if asked is None else asked
    rows = await _read(db, [epoch_no], network)
    if not rows:
        raise errors.epoch_not_found()
    [row] = rows
    kept.require_same(db, row.tip_hash == last.block_hash)
    ask.notes.settle(row.last_hash, row.last_block_no, row.tip_block_no)
    return last, row


async def _read(db: sql.Connection, numbers: Sequence[int], network: Network) -> list[_EpochRow]:
    starts, beyond = [[network.epoch_start(number + more) for number in numbers] for more in (0, 1)]
    return await _epochs.all(db, numbers, starts, beyond)


def _show(row: _EpochRow, network: Network) -> Epoch:
    first_slot_no, next_slot_no = network.epoch_start(row.epoch_no), network.epoch_start(row.epoch_no + 1)

    def block(block_hash: bytes, block_no: int, slot_no: int) -> EpochBlock:
        return EpochBlock(block_hash.hex(), block_no, slot_no, network.slot_time(slot_no))

    return Epoch(
        epoch_no=row.epoch_no,
        start_time=network.slot_time(first_slot_no),
        end_time=network.slot_time(next_slot_no),
        first_slot_no=first_slot_no,
        last_slot_no=next_slot_no - 1,
        block_count=row.blocks,
        tx_count=row.tx_count,
        fees=str(row.fees),
        output=row.output,
        first_block=block(row.first_hash, row.first_block_no, row.first_slot_no),
        last_block=block(row.last_hash, row.last_block_no, row.last_slot_no),
    )
