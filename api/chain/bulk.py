"""Several addresses, accounts, transactions, assets or outputs at once, in one snapshot."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, TypeVar

from api import errors
from api.answers import ChainBulk
from api.ask import ChainPost, Nothing
from api.chain import accounts, addresses, assets, owners, tip, transactions, utxos
from api.chain.accounts import Account
from api.chain.addresses import AddressInfo
from api.chain.assets import Asset, AssetId, AssetKind, Fingerprint
from api.chain.transactions import FullTransaction
from api.chain.utxos import MAX_INDEX, MadeOutput
from api.errors import Refusal
from api.http.bodies import in_parts
from api.parameters import Body, Hex, Kind, Texts
from shared.address import MAX_TEXT_LENGTH
from shared.network import Network
from shared.sql import Connection

MAX_IDS = 100

Id = TypeVar("Id")
Found = TypeVar("Found")

_REFERENCE = re.compile(r"(?P<tx_hash>[0-9a-fA-F]{64})#(?P<index>[0-9]{1,5})")


class Ids(Body, frozen=True, kw_only=True):
    """The ids of the objects to get, each once."""

    ids: Annotated[tuple[str, ...], Texts(MAX_IDS, MAX_TEXT_LENGTH)]


async def get_addresses(ask: ChainPost[Nothing, Ids]) -> ChainBulk[AddressInfo]:
    """Get up to 100 addresses."""

    async def read(db: Connection, raw: bytes, network: Network) -> AddressInfo:
        info, _ = await addresses.read_with_tip(db, raw, network)
        return info

    return await _bulk(ask, partial(owners.parse_address, network=ask.network), read)


async def get_accounts(ask: ChainPost[Nothing, Ids]) -> ChainBulk[Account]:
    """Get up to 100 stake accounts."""

    async def read(db: Connection, raw: bytes, network: Network) -> Account:
        account, _ = await accounts.read_with_tip(db, raw, network)
        return account

    return await _bulk(ask, partial(owners.parse_stake, network=ask.network), read)


async def get_transactions(ask: ChainPost[Nothing, Ids]) -> ChainBulk[FullTransaction]:
    """Get up to 100 transactions by their hashes."""
    return await _bulk(ask, _parser(Hex(32, message=errors.invalid_transaction_hash)), transactions.read)


async def get_assets(ask: ChainPost[Nothing, Ids]) -> ChainBulk[Asset]:
    """Get up to 100 assets.

    Their metadata is read from the chain (CIP-68 and CIP-25), not from the registry.
    """

    async def read(db: Connection, named: AssetId | Fingerprint, network: Network) -> Asset | None:
        asset = await assets.find(db, named)
        return None if asset is None else await assets.read(db, asset, network)

    return await _bulk(ask, _parser(AssetKind()), read)


async def get_utxos(ask: ChainPost[Nothing, Ids]) -> ChainBulk[MadeOutput]:
    """Get up to 100 outputs, spent or not.

    An id is the hash of the transaction, `#` and the index of the output there.
    """

    async def read(db: Connection, reference: tuple[bytes, int], network: Network) -> MadeOutput | None:
        return await utxos.read(db, *reference, network)

    return await _bulk(ask, _reference, read)


async def _bulk(
    ask: ChainPost[Nothing, Ids],
    parse: Callable[[str], Id],
    read: Callable[[Connection, Id, Network], Awaitable[Found | None]],
) -> ChainBulk[Found]:
    """The object of each id, read one after the other in one snapshot. All ids are parsed first."""
    wanted = _parsed(ask.body.ids, parse)
    async with ask.snapshot() as db:

        async def objects() -> AsyncIterator[Found | None]:
            for parsed in wanted:
                yield await read(db, parsed, ask.network)

        last_updated = (await tip.read(db)).last_updated(ask.network)
        return await ask.written(ChainBulk(data=in_parts(objects(), "ids"), last_updated=last_updated))


def _parsed(ids: Sequence[str], parse: Callable[[str], Id]) -> list[Id]:
    """The ids as values. Raises a refusal that names the first wrong or repeated one by its position."""
    places: dict[Id, int] = {}
    for place, text in enumerate(ids):
        try:
            value = parse(text)
        except Refusal as refusal:
            raise refusal.about(f"ids[{place}]") from refusal
        if value in places:
            raise errors.invalid_parameter(f"ids[{place}] repeats ids[{places[value]}]: send each id once")
        places[value] = place
    return list(places)


def _parser(kind: Kind[Id]) -> Callable[[str], Id]:
    """Parses texts of a kind. Raises its refusal."""

    def parse(text: str) -> Id:
        try:
            return kind.of_text(text)
        except ValueError as error:
            raise kind.refusal("") from error

    return parse


def _reference(text: str) -> tuple[bytes, int]:
    match = _REFERENCE.fullmatch(text)
    if match is None or int(match["index"]) > MAX_INDEX:
        raise errors.invalid_output_reference()
    return bytes.fromhex(match["tx_hash"]), int(match["index"])
