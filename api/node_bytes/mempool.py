"""The mempool of a node: the transactions that wait for a block, in the order in which it got them."""

from collections.abc import Hashable
from typing import Annotated, Any, Generic, TypeVar

import msgspec

from api.node_bytes.connection import Connection
from api.node_bytes.lanes import Lanes
from api.sources.node_addresses import NodeAddresses
from api.sources.nodes import NodeAway

READINGS = 1
"""The most readings at a time, per process and network."""

WITHIN_S = 8.0
MAX_TRANSACTIONS = 10_000
"""A longer mempool is not read. One of two full blocks, which nodes keep, has some 800 of the smallest transactions."""

_IN_FLIGHT = 50

Kind = TypeVar("Kind")
_Hash = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-fA-F]{64}\Z")]
_Hex = Annotated[str, msgspec.Meta(pattern=r"^([0-9a-fA-F]{2})*\Z")]
_Index = Annotated[int, msgspec.Meta(ge=0)]


class Reference(msgspec.Struct, frozen=True):
    """A reference to an output."""

    tx_hash: str
    output_index: int


class MempoolReader:
    """Reads the mempool of one node."""

    def __init__(self, network: str, addresses: NodeAddresses) -> None:
        self._lanes = Lanes(network, addresses, READINGS, "readings of the mempool")

    async def hashes(self, key: Hashable) -> list[str]:
        """The hashes of the transactions, in the order in which the node got them.

        Raises Refusal after too long a wait for a turn of the credential `key`, and NodeAway.
        """

        async def read(connection: Connection) -> list[str]:
            return [each.id for each in await _read(connection, _Id)]

        return await self._lanes.read(key, WITHIN_S, read)

    async def transactions(self, key: Hashable) -> list["WaitingTransaction"]:
        """The same with their contents."""

        async def read(connection: Connection) -> list[WaitingTransaction]:
            return await _read(connection, WaitingTransaction, fields="all")

        return await self._lanes.read(key, WITHIN_S, read)

    async def close(self) -> None:
        await self._lanes.close()


class _Struct(msgspec.Struct, frozen=True, rename="camel"):
    """Parts of what Ogmios writes."""


class _Id(_Struct, frozen=True):
    id: _Hash


class _Lovelace(_Struct, frozen=True):
    lovelace: int


class _Ada(_Struct, frozen=True):
    ada: _Lovelace


class SpentReference(_Struct, frozen=True):
    """An input."""

    transaction: _Id
    index: _Index

    @property
    def reference(self) -> Reference:
        return Reference(self.transaction.id, self.index)


class Script(_Struct, frozen=True):
    """A script. A native one has its bytes only with `--include-script-cbor`."""

    language: str
    cbor: _Hex | None = None


class Output(_Struct, frozen=True):
    """An output; `value` maps `ada` and each policy to quantities by name."""

    address: str
    value: dict[str, dict[str, int]]
    datum_hash: _Hash | None = None
    datum: _Hex | None = None
    script: Script | None = None

    def __post_init__(self) -> None:
        if "lovelace" not in self.value.get("ada", {}):
            raise ValueError("a value without ada")


class _Certificate(_Struct, frozen=True):
    type: str
    stake_pool: Any = None


class _Validator(_Struct, frozen=True):
    purpose: str
    index: int


class _Units(_Struct, frozen=True):
    memory: int
    cpu: int


class Redeemer(_Struct, frozen=True):
    """A redeemer."""

    validator: _Validator
    execution_units: _Units


class _Interval(_Struct, frozen=True):
    invalid_before: int | None = None
    invalid_after: int | None = None


class WaitingTransaction(_Struct, frozen=True):
    """A transaction of the mempool. `cbor` is None without `--include-transaction-cbor`."""

    id: _Hash
    inputs: list[SpentReference]
    spends: str = "inputs"
    outputs: list[Output] = []
    collaterals: list[SpentReference] = []
    references: list[SpentReference] = []
    collateral_return: Output | None = None
    fee: dict[str, dict[str, int]] = {}
    withdrawals: dict[str, _Ada] = {}
    certificates: list[_Certificate] = []
    mint: dict[str, dict[str, int]] = {}
    redeemers: list[Redeemer] = []
    validity_interval: _Interval = _Interval()
    cbor: str | None = None


class _Next(msgspec.Struct, Generic[Kind], frozen=True):
    transaction: Kind | None


async def _read(connection: Connection, kind: type[Kind], **params: object) -> list[Kind]:
    """The transactions of a snapshot of the mempool. Raises NodeAway, NodeRefused.

    NOTE: `acquireMempool` answers at once only on a connection that holds no snapshot, so it is released at the end.
    """
    await connection.call("acquireMempool", msgspec.Raw)
    found: list[Kind] = []
    asked = 0
    is_whole = False
    while not is_whole:
        for _ in range(_IN_FLIGHT):
            await connection.send("nextTransaction", **params)
        asked += _IN_FLIGHT
        if asked > MAX_TRANSACTIONS + _IN_FLIGHT:
            raise NodeAway(f"a mempool of more than {MAX_TRANSACTIONS} transactions")
        for _ in range(_IN_FLIGHT):  # the node repeats that there is no further one
            answer: _Next[Kind] = await connection.receive(_Next[kind])  # type: ignore[valid-type]
            if answer.transaction is None:
                is_whole = True
            else:
                found.append(answer.transaction)
    await connection.call("releaseMempool", msgspec.Raw)
    return found
