"""What two wallets ask below /blockfrost, in their order, and what they show of it.

`lace` follows packages/lib/cardano-provider-core and packages/contract/cardano-context of
https://github.com/input-output-hk/lace, `trezor` the methods of
https://github.com/blockfrost/blockfrost-websocket-link, the backend of Trezor Suite. Both read 404 as: never used.
"""

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec

Json = Any
Path = Callable[[int, int], str]
"""The address of a wallet by role and index."""

_PAGE = 100
_LACE_HISTORY, _LACE_STAKE_GAP = 10, 5  # ACTIVITIES_PER_PAGE, STAKE_KEY_GAP
_TREZOR_GAP = 20  # ADDRESS_GAP_LIMIT
_LOVELACE = "lovelace"


class Missing(Exception):
    """An answer with status 404."""


class Backend:
    """Answers to GET below /blockfrost/api/v0. Any status but 200 and 404 ends the test."""

    def __init__(self, get: Callable[[str], Awaitable[Any]]) -> None:
        self._get, self.requests = get, 0

    async def ask(self, path: str) -> Json:
        self.requests += 1
        reply = await self._get(path)
        if reply.status == 404:
            raise Missing(path)
        assert reply.status == 200, (path, reply.status, reply.body)
        return reply.body

    async def ask_or(self, nothing: Json, path: str) -> Json:
        """The answer, or `nothing` for 404."""
        try:
            return await self.ask(path)
        except Missing:
            return nothing

    async def pages(self, path: str) -> list[Json]:
        """All pages of a list, one after the other until one is short."""
        found: list[Json] = []
        separator = "&" if "?" in path else "?"
        while len(found) % _PAGE == 0:
            page = await self.ask(f"{path}{separator}page={len(found) // _PAGE + 1}&count={_PAGE}")
            found += page
            if not page:
                break
        return found


class Activity(msgspec.Struct, frozen=True):
    """A transaction as a wallet lists it. `change` is by unit: what it gives to the wallet less what it takes."""

    tx_hash: str
    block_height: int
    fee: int
    change: dict[str, int]
    time: int


class Lace(msgspec.Struct, frozen=True):
    """What Lace shows of an account."""

    tip: tuple[int, str, int]
    epoch_length: int
    key_deposit: int
    addresses: set[str]
    balance: dict[str, int]
    activities: list[Activity]
    staking: dict[str, Any]
    delegations: list[tuple[str, str]]
    registrations: list[tuple[str, str]]
    rewards: list[tuple[int, int, str]]
    withdrawals: list[str]
    tokens: dict[str, tuple[str, int]]
    pool: tuple[str, str, int]


async def lace(backend: Backend, stake_addresses: list[str]) -> Lace:
    """A first start with the stake keys of an account: those without addresses end the search."""
    tip = await backend.ask("/blocks/latest")
    parameters = await backend.ask("/epochs/latest/parameters")
    genesis = await backend.ask("/genesis")
    eras = await backend.ask("/network/eras")
    stake = stake_addresses[0]
    addresses = await _lace_addresses(backend, stake_addresses)
    outputs = await backend.pages(f"/accounts/{stake}/utxos?order=desc")
    held = Counter[str]()
    for output in outputs:
        held.update({each["unit"]: int(each["quantity"]) for each in output["amount"]})
    account = await backend.ask(f"/accounts/{stake}")
    delegations = await backend.pages(f"/accounts/{stake}/delegations?order=desc")
    pool = await backend.ask(f"/pools/{account['pool_id']}")
    metadata = await backend.ask(f"/pools/{account['pool_id']}/metadata")
    tokens = {unit: await backend.ask(f"/assets/{unit}") for unit in held if unit != _LOVELACE}
    return Lace(
        tip=(tip["height"], tip["hash"], tip["slot"]),
        epoch_length=eras[-1]["parameters"]["epoch_length"] if genesis["slot_length"] == 1 else 0,
        key_deposit=int(parameters["key_deposit"]),
        addresses=addresses,
        balance=dict(held),
        activities=await _lace_activities(backend, addresses),
        staking={
            "active": account["active"],
            "registered": account["registered"],
            "rewards": int(account["rewards_sum"] or 0),
            "withdrawable": int(account["withdrawable_amount"]),
            "controlled": int(account["controlled_amount"]),
        },
        delegations=[(each["tx_hash"], each["pool_id"]) for each in delegations],
        registrations=[
            (each["tx_hash"], each["action"])
            for each in await backend.pages(f"/accounts/{stake}/registrations?order=desc")
        ],
        rewards=await lace_rewards(backend, stake),
        withdrawals=[each["tx_hash"] for each in await backend.pages(f"/accounts/{stake}/withdrawals?order=desc")],
        tokens={
            unit: ((each["onchain_metadata"] or {}).get("name") or each["fingerprint"], int(each["quantity"]))
            for unit, each in tokens.items()
        },
        pool=(pool["pool_id"], metadata.get("url") or "", int(pool["live_stake"])),
    )


async def lace_rewards(backend: Backend, stake: str) -> list[tuple[int, int, str]]:
    """The rewards of an account, newest first: epoch, lovelace and pool."""
    listed = await backend.pages(f"/accounts/{stake}/rewards?order=desc")
    return [(each["epoch"], int(each["amount"]), each["pool_id"]) for each in listed]


async def _lace_addresses(backend: Backend, stake_addresses: list[str]) -> set[str]:
    found, gap = set[str](), 0
    for stake in stake_addresses:
        page, addresses = 1, list[str]()
        while len(addresses) == (page - 1) * _PAGE:
            listed = await backend.ask_or([], f"/accounts/{stake}/addresses?count={_PAGE}&page={page}")
            addresses += [each["address"] for each in listed]
            page += 1
            if not listed:
                break
        gap = 0 if addresses else gap + 1
        found.update(addresses)
        if gap == _LACE_STAKE_GAP:
            break
    return found


async def _lace_activities(backend: Backend, addresses: set[str]) -> list[Activity]:
    """The newest transactions of each address, then older ones until a page is short."""
    seen = dict[str, Json]()
    for address in addresses:
        until = ""
        while True:
            path = f"/addresses/{address}/transactions?count={_LACE_HISTORY}&order=desc{until}"
            page = await backend.ask_or([], path)
            seen.update({each["tx_hash"]: each for each in page})
            if len(page) < _LACE_HISTORY:
                break
            oldest = page[-1]
            height, index = oldest["block_height"], oldest["tx_index"]
            until = f"&to={height - 1}" if index == 0 else f"&to={height}:{index - 1}"
    return await _activities(backend, addresses, seen.values(), with_cbor=True)


async def lace_polls(backend: Backend, address: str, newest: Json) -> list[str]:
    """Transactions of an address after the newest one that is known, oldest first."""
    after = f"&from={newest['block_height']}:{newest['tx_index'] + 1}"
    page = await backend.ask_or([], f"/addresses/{address}/transactions?count={_LACE_HISTORY}&order=asc{after}")
    return [each["tx_hash"] for each in page]


async def _activities(
    backend: Backend, addresses: set[str], listed: Iterable[Json], *, with_cbor: bool
) -> list[Activity]:
    """The transactions of lists in detail, newest first."""
    shown = []
    newest_first = sorted(listed, key=lambda each: (each["block_height"], each["tx_index"]), reverse=True)
    for place in newest_first:
        tx_hash = place["tx_hash"]
        told = await backend.ask(f"/txs/{tx_hash}")
        if with_cbor:
            assert (await backend.ask(f"/txs/{tx_hash}/cbor"))["cbor"]
        utxos = await backend.ask(f"/txs/{tx_hash}/utxos")
        assert (told["block_height"], told["index"], told["block_time"]) == (
            place["block_height"],
            place["tx_index"],
            place["block_time"],
        )
        change = Counter[str]()
        for output in utxos["outputs"]:
            if output["address"] in addresses and not output["collateral"]:
                change.update({each["unit"]: int(each["quantity"]) for each in output["amount"]})
        for spent in utxos["inputs"]:
            if spent["address"] in addresses and not spent["collateral"] and not spent["reference"]:
                change.subtract({each["unit"]: int(each["quantity"]) for each in spent["amount"]})
        amounts = {unit: quantity for unit, quantity in change.items() if quantity}
        shown.append(Activity(tx_hash, told["block_height"], int(told["fees"]), amounts, told["block_time"]))
    return shown


class Trezor(msgspec.Struct, frozen=True):
    """What Trezor Suite shows of an account."""

    block: tuple[int, str]
    fee_per_byte: int
    used: set[str]
    unused: int
    transactions: list[Activity]
    outputs: dict[tuple[str, int], tuple[str, int, int]]
    staking: tuple[bool, str | None, int]


async def trezor(backend: Backend, address_of: Path, stake: str) -> Trezor:
    """The server's information, an account with its transactions, its outputs, and the fee."""
    assert (await backend.ask("/"))["version"]
    latest = await backend.ask("/blocks/latest")
    account = await backend.ask(f"/accounts/{stake}")
    addresses = await _trezor_addresses(backend, address_of)
    used = {address for address, told in addresses.items() if told is not None}
    listed = {}
    for address in addresses:
        if address in used:
            for place in await _every_page(backend, f"/addresses/{address}/transactions"):
                listed[place["tx_hash"]] = place
    epoch = await backend.ask("/epochs/latest")
    parameters = await backend.ask(f"/epochs/{epoch['epoch']}/parameters")
    return Trezor(
        block=(latest["height"], latest["hash"]),
        fee_per_byte=parameters["min_fee_a"],
        used=used,
        unused=len(addresses) - len(used),
        transactions=await _activities(backend, used, listed.values(), with_cbor=False),
        outputs=await _trezor_outputs(backend, used),
        staking=(account["active"], account["pool_id"], int(account["withdrawable_amount"])),
    )


async def _trezor_addresses(backend: Backend, address_of: Path) -> dict[str, Json]:
    """The addresses of both roles, in bundles as long as the gap; None for one that was never used."""
    found = dict[str, Json]()
    for role in (0, 1):
        empty, index = 0, 0
        while empty < _TREZOR_GAP:
            for _ in range(_TREZOR_GAP):
                address = address_of(role, index)
                found[address] = await backend.ask_or(None, f"/addresses/{address}")
                empty = 0 if found[address] else empty + 1
                index += 1
    return found


async def _trezor_outputs(backend: Backend, used: set[str]) -> dict[tuple[str, int], tuple[str, int, int]]:
    """The address, the lovelace and the height of each unspent output."""
    outputs = {}
    for address in used:
        for output in await _every_page(backend, f"/addresses/{address}/utxos"):
            block = await backend.ask(f"/blocks/{output['block']}")
            lovelace = next(int(each["quantity"]) for each in output["amount"] if each["unit"] == _LOVELACE)
            outputs[output["tx_hash"], output["output_index"]] = output["address"], lovelace, block["height"]
    return outputs


async def _every_page(backend: Backend, path: str) -> list[Json]:
    """As blockfrost-js with batchSize 1: page after page until one is short."""
    found, page = list[Json](), 1
    while True:
        listed = await backend.ask(f"{path}?count={_PAGE}&page={page}&order=asc")
        found += listed
        if len(listed) < _PAGE:
            return found
        page += 1
