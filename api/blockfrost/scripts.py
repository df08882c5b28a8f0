"""`/scripts`: all scripts, and scripts and datums by hash."""

import msgspec

from api.ask import ChainAsk
from api.blockfrost.paging import Page
from api.chain import contracts, tip
from api.chain.contracts import DatumQuestion, ScriptQuestion
from shared import sql


class Script(msgspec.Struct, frozen=True):
    """A script. `type` is `timelock` or, say, `plutusV3`; `serialised_size` (bytes) is null for a native script."""

    script_hash: str
    type: str
    serialised_size: int | None


class ScriptJson(msgspec.Struct, frozen=True):
    """A native script as JSON; null for a Plutus script."""

    json: msgspec.Raw | None


class ScriptCbor(msgspec.Struct, frozen=True):
    """A Plutus script as CBOR; null for a native script."""

    cbor: str | None


class DatumValue(msgspec.Struct, frozen=True):
    """A datum as JSON in the detailed schema; null if it is nested too deeply."""

    json_value: msgspec.Raw | None


class DatumCbor(msgspec.Struct, frozen=True):
    """A datum as CBOR."""

    cbor: str


class ListedScript(msgspec.Struct, frozen=True):
    """A script in the list of all."""

    script_hash: str


_listed = sql.beside(__file__).values("listed", bytes)


async def listed(ask: ChainAsk[Page]) -> list[ListedScript]:
    """List all scripts in the order of the transactions that showed them first."""
    asked = ask.question
    newest_first = asked.order == "desc"
    async with ask.snapshot() as db:
        await tip.read(db)
        hashes = await _listed.all(db, asked.count, asked.offset, newest_first)
    shown = [ListedScript(script_hash.hex()) for script_hash in hashes]
    return shown[::-1] if newest_first else shown


async def info(ask: ChainAsk[ScriptQuestion]) -> Script:
    """Get a script by hash."""
    script = (await contracts.get_script(ask.about(ask.question))).data
    size = None if script.language == "native" else script.size
    kind = "timelock" if script.language == "native" else script.language.replace(":v", "V")
    return Script(script.script_hash, kind, size)


async def as_json(ask: ChainAsk[ScriptQuestion]) -> ScriptJson:
    """Get a native script as JSON."""
    script = (await contracts.get_script(ask.about(ask.question))).data
    return ScriptJson(None if script.json is msgspec.UNSET else script.json)


async def as_cbor(ask: ChainAsk[ScriptQuestion]) -> ScriptCbor:
    """Get a Plutus script as CBOR."""
    script = (await contracts.get_script(ask.about(ask.question))).data
    return ScriptCbor(None if script.language == "native" else script.cbor)


async def datum(ask: ChainAsk[DatumQuestion]) -> DatumValue:
    """Get a datum as JSON."""
    stored = (await contracts.get_datum(ask.about(ask.question))).data
    return DatumValue(None if stored.json is msgspec.UNSET else stored.json)


async def datum_cbor(ask: ChainAsk[DatumQuestion]) -> DatumCbor:
    """Get a datum as CBOR."""
    return DatumCbor((await contracts.get_datum(ask.about(ask.question))).data.cbor)
