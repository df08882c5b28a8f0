"""Makes blocks from transactions, with the headers of every era."""

from typing import Any

from devnet import addresses, parameters
from devnet.blocks import Block
from devnet.cast import Cast, PoolKeys
from devnet.networks import Network

Json = dict[str, Any]

_HEADER_BYTES = 860  # the approximate size of a Praos block's header
# NOTE: the version that producers support, which is not the ledger's.
_PRODUCERS_MAJOR = {"conway": 10}
_ERAS_WITH_NONCE = ("shelley", "allegra", "mary", "alonzo")


class Headers:
    """Makes the blocks of a cast's pools and genesis delegates."""

    def __init__(self, cast: Cast) -> None:
        self._cast = cast
        self._issuers: dict[str, Json] = {}

    def praos(
        self, era: str, parent: Block | None, slot: int, leader: PoolKeys | str, transactions: list[Json]
    ) -> Block:
        """A block of a pool, or of the genesis delegate with that key."""
        ancestor, height = _above(parent, "genesis")
        issuer = self._issuer(leader)
        content: Json = {
            "type": "praos",
            "era": era,
            "id": _id(ancestor, slot, issuer["verificationKey"], transactions),
            "ancestor": ancestor,
            "height": height,
            "slot": slot,
            "issuer": issuer,
            "protocol": {"version": {"major": _PRODUCERS_MAJOR.get(era, parameters.PROTOCOL_MAJOR[era]), "minor": 0}},
            "size": {"bytes": _size(transactions)},
            "transactions": transactions,
        }
        if era in _ERAS_WITH_NONCE:
            content["nonce"] = issuer["leaderValue"]
        return _block(content, slot)

    def byron(self, network: Network, parent: Block | None, slot: int, transactions: list[Json]) -> Block:
        ancestor, height = _above(parent, genesis_hash(network))
        key = self._cast.delegates[height % len(self._cast.delegates)]
        content: Json = {
            "type": "bft",
            "era": "byron",
            "id": _id(ancestor, slot, key, transactions),
            "ancestor": ancestor,
            "height": height,
            "slot": slot,
            "size": {"bytes": _size(transactions)},
            "transactions": transactions,
            "operationalCertificates": [],
            "protocol": {
                "id": network.magic,
                "version": {"major": 0, "minor": 0, "patch": 0},
                "software": {"appName": "cardano-sl", "number": 0},
            },
            "issuer": {"verificationKey": key + key},
            "delegate": {"verificationKey": key[::-1] + key},
        }
        return _block(content, slot)

    def boundary(self, network: Network, parent: Block | None, epoch: int) -> Block:
        """A Byron epoch boundary block: without slot and content, and with the same height as its parent."""
        ancestor, height = _above(parent, genesis_hash(network))
        slot = network.epoch_start(epoch)
        content: Json = {
            "type": "ebb",
            "era": "byron",
            "id": _id(ancestor, slot, "boundary", []),
            "ancestor": ancestor,
            "height": height if parent is None else height - 1,
        }
        return _block(content, slot)

    def _issuer(self, leader: PoolKeys | str) -> Json:
        name = leader if isinstance(leader, str) else leader.cold_key
        if name not in self._issuers:
            vrf_key = name[::-1] if isinstance(leader, str) else leader.vrf_key
            self._issuers[name] = {
                "verificationKey": name,
                "vrfVerificationKey": vrf_key,
                "leaderValue": {"output": name * 2, "proof": (name * 3)[:160]},
                "operationalCertificate": {
                    "count": 0,
                    "sigma": name * 2,
                    "kes": {"period": 0, "verificationKey": vrf_key},
                },
            }
        return self._issuers[name]


def genesis_hash(network: Network) -> str:
    """The ancestor that the first Byron block of a network names."""
    return addresses.blake2b_256(f"genesis of {network.name}".encode())


def _above(parent: Block | None, genesis: str) -> tuple[str, int]:
    return (genesis, 0) if parent is None else (parent.id, parent.height + 1)


def _id(ancestor: str, slot: int, issuer: str, transactions: list[Json]) -> str:
    """A hash that differs between any two blocks."""
    parts = [ancestor, str(slot), issuer, *(tx["id"] for tx in transactions)]
    return addresses.blake2b_256(" ".join(parts).encode())


def _size(transactions: list[Json]) -> int:
    return _HEADER_BYTES + sum(len(tx["cbor"]) // 2 for tx in transactions)


def _block(content: Json, slot: int) -> Block:
    return Block(slot, content["id"], content["height"], content["ancestor"], content["era"], content)
