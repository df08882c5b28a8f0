"""Scripts and datums by hash, and those that outputs carry."""

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, UnsetType

from api import errors
from api.answers import ChainAnswer, Json, json_of
from api.ask import ChainAsk
from api.chain import plutus_data
from api.chain.tip import Tip
from api.parameters import Hex, Question
from shared import packed, sql
from shared.ledger import HASH28_BYTES, NATIVE, SCRIPT_LANGUAGES, ScriptLanguage
from shared.sql import Connection


class ScriptQuestion(Question, frozen=True, kw_only=True):
    """A script by its hash."""

    hash: Annotated[bytes, Hex(HASH28_BYTES, message=errors.invalid_script_hash)] = msgspec.field(name="scriptHash")


class DatumQuestion(Question, frozen=True, kw_only=True):
    """A datum by its hash."""

    hash: Annotated[bytes, Hex(32, message=errors.invalid_datum_hash)] = msgspec.field(name="datumHash")


class Script(msgspec.Struct, frozen=True):
    """A script.

    Its hash is computed from a byte for the language followed by `cbor`, whose length in bytes is `size`. `json` is in
    the format of cardano-cli; only native scripts have it, unless they are nested too deeply. `first_tx_hash` is the
    first indexed transaction that showed the script.
    """

    script_hash: str
    language: ScriptLanguage
    cbor: str
    size: int
    first_tx_hash: str
    first_slot_no: int
    json: Json | UnsetType = UNSET


class Datum(msgspec.Struct, frozen=True):
    """A datum, as CBOR in hex and as JSON in the detailed schema of cardano-cli.

    `json` names the type of each value, such as `{"int": 1}`; it is absent if the datum is nested too deeply.
    `first_tx_hash` is the first indexed transaction that showed the datum.
    """

    datum_hash: str
    cbor: str
    first_tx_hash: str
    first_slot_no: int
    json: Json | UnsetType = UNSET


class Carried(msgspec.Struct, frozen=True):
    """What an output carries besides value.

    `inline_datum` is the CBOR of its datum in hex, null if the output has only the hash.
    """

    data_hash: str | None = None
    inline_datum: str | None = None
    reference_script_hash: str | None = None


class _Found(msgspec.Struct, frozen=True):
    tip_slot_no: int
    tip_hash: bytes
    tip_block_no: int
    slot_no: int | None
    block_no: int | None
    block_hash: bytes | None
    tx_hash: bytes | None
    body: bytes | None


class _FoundScript(_Found, frozen=True):
    language: int | None


class _Body(msgspec.Struct, frozen=True):
    hash: bytes
    body: bytes


_sql = sql.beside(__file__)
_script = _sql.query("found", _FoundScript, table="script", language=", script.language")
_datum = _sql.query("found", _Found, table="datum", language="")
_bodies = _sql.query("bodies", _Body)


async def get_script(ask: ChainAsk[ScriptQuestion]) -> ChainAnswer[Script]:
    """Get a script by hash."""
    async with ask.connection() as db:
        row = await _script.one(db, ask.question.hash)
    if row is None:
        raise errors.network_not_available()
    if row.body is None or row.tx_hash is None or row.slot_no is None or row.language is None:
        raise errors.script_not_found()
    return _answer(
        ask,
        row,
        Script(
            script_hash=ask.question.hash.hex(),
            language=SCRIPT_LANGUAGES[row.language],
            cbor=row.body.hex(),
            size=len(row.body),
            first_tx_hash=row.tx_hash.hex(),
            first_slot_no=row.slot_no,
            json=json_of(plutus_data.native_script(row.body)) if row.language == NATIVE else UNSET,
        ),
    )


async def get_datum(ask: ChainAsk[DatumQuestion]) -> ChainAnswer[Datum]:
    """Get a datum by hash."""
    async with ask.connection() as db:
        row = await _datum.one(db, ask.question.hash)
    if row is None:
        raise errors.network_not_available()
    if row.body is None or row.tx_hash is None or row.slot_no is None:
        raise errors.datum_not_found()
    return _answer(
        ask,
        row,
        Datum(
            datum_hash=ask.question.hash.hex(),
            cbor=row.body.hex(),
            first_tx_hash=row.tx_hash.hex(),
            first_slot_no=row.slot_no,
            json=json_of(plutus_data.of_cbor(row.body)),
        ),
    )


async def carried(db: Connection, outputs: Sequence[tuple[bytes | None, int]]) -> list[Carried]:
    """What outputs carry, each given by `tx.attached` and its index. One statement reads all datums."""
    attached = [packed.unpack_attached(column).get(index) for column, index in outputs]
    inline = {parts.datum_hash for parts in attached if parts is not None and parts.inline}
    bodies = {row.hash: row.body.hex() for row in await _bodies.all(db, list(inline))} if inline else {}
    return [
        Carried()
        if parts is None
        else Carried(
            data_hash=_hex(parts.datum_hash),
            inline_datum=bodies[parts.datum_hash] if parts.inline and parts.datum_hash is not None else None,
            reference_script_hash=_hex(parts.script_hash),
        )
        for parts in attached
    ]


def _answer(ask: ChainAsk[Any], row: _Found, data: Any) -> ChainAnswer[Any]:
    assert row.block_no is not None and row.block_hash is not None, "the transaction that was found is in a block"
    ask.notes.settle(row.block_hash, row.block_no, row.tip_block_no)
    return ChainAnswer(data=data, last_updated=Tip(row.tip_slot_no, row.tip_hash).last_updated(ask.network))


def _hex(digest: bytes | None) -> str | None:
    return None if digest is None else digest.hex()
