"""Makes chains shaped like mainnet for `bench.index`: the frames of Ogmios, quickly, from a seed.

Every input resolves and every transaction balances, so that the indexer does all that it does on a real chain. The
shape is the mean of mainnet's history: 2.5 inputs, 2.6 outputs, assets in a third of the transactions, a few addresses
with most of the outputs, most inputs from the last hour and the rest of any age. What the indexer skips (witnesses,
scripts, CBOR) is there as text of the usual length.
"""

import hashlib
import random
from collections.abc import Iterator
from typing import TypeVar

import msgspec

from shared.encoding import bech32_encode

BLOCK_TRANSACTIONS = 20
_BLOCK_SLOTS = 20
_FIRST_SLOT = 133_660_800  # the first slot of a mainnet epoch
_GENESIS_OUTPUTS = 20_000
_GENESIS_LOVELACE = 10**12
_LEAST_LOVELACE = 10**6
_FEE = 200_000
_DEPOSIT = 2_000_000
_POOLS, _TOKENS = 300, 300

# How many unspent outputs count as recent, and chances: of an input to spend one of them; of an output to go to a new
# address, of that to have a stake part, of an output to carry a datum; the rest of a transaction to have the thing.
_RECENT_OUTPUTS = 4_000
_FROM_RECENT = 0.6
_NEW_ADDRESS = 0.25
_STAKED = 0.72
_DATUM = 0.2
_WITH_ASSETS = 0.35
_MINTING = 0.06
_METADATA = 0.25
_SCRIPTS = 0.15
_DELEGATION = 0.015

_Thing = TypeVar("_Thing")
_Asset = tuple[str, str]
"""Policy id and asset name in hex."""


class _Unspent(msgspec.Struct, frozen=True):
    tx_hash: str
    index: int
    address: str
    lovelace: int
    assets: dict[_Asset, int]


class Chain:
    """A chain under way. `genesis` maps the addresses that it begins with to lovelace, as Ogmios tells it."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._text = self._random.randbytes(1 << 20).hex()
        self._accounts: list[bytes] = []
        self._addresses: list[str] = []
        self._policies = [self._hex(28) for _ in range(_TOKENS)]
        self._pools = [bech32_encode("pool", self._random.randbytes(28)) for _ in range(_POOLS)]
        funded = [self._random.randbytes(28) for _ in range(_GENESIS_OUTPUTS)]
        self.genesis = {bech32_encode("addr", b"\x61" + key): _GENESIS_LOVELACE for key in funded}
        self._old = [
            _Unspent(hashlib.blake2b(b"\x61" + key, digest_size=32).hexdigest(), 0, address, lovelace, {})
            for key, (address, lovelace) in zip(funded, self.genesis.items(), strict=True)
        ]
        self._recent: list[_Unspent] = []
        self._transactions = self._with_assets = self._minted = 0

    def frames(self, transactions: int) -> Iterator[bytes]:
        """Answers to `nextBlock`, each a block of BLOCK_TRANSACTIONS transactions."""
        ancestor = self._hex(32)
        for height in range(transactions // BLOCK_TRANSACTIONS):
            block_id, slot = self._hex(32), _FIRST_SLOT + height * _BLOCK_SLOTS
            content = ",".join([self._transaction(slot) for _ in range(BLOCK_TRANSACTIONS)])
            yield (
                f'{{"jsonrpc":"2.0","method":"nextBlock","result":{{"direction":"forward","block":{{"type":"praos",'
                f'"era":"conway","id":"{block_id}","size":{{"bytes":50000}},"height":{height},"slot":{slot},'
                f'"ancestor":"{ancestor}","issuer":{{"verificationKey":"{height % _POOLS:064x}",'
                f'"vrfVerificationKey":"{self._filling(64)}","leaderValue":{{"proof":"{self._filling(160)}"}}}},'
                f'"transactions":[{content}]}},"tip":{{"slot":{slot},"id":"{block_id}","height":{height}}}}},"id":null}}'
            ).encode()
            ancestor = block_id

    def _transaction(self, slot: int) -> str:
        self._transactions += 1
        tx_hash = self._hex(32)
        spent = [self._spend() for _ in range(self._count(2.5))]
        minted = self._mint(spent)
        delegates = self._happens(_DELEGATION) and self._accounts
        left = sum(unspent.lovelace for unspent in spent) - _FEE - (_DEPOSIT if delegates else 0)
        paid = self._pay(tx_hash, spent, left, _sum(spent, minted))
        self._recent += paid
        inputs = ",".join([f'{{"transaction":{{"id":"{one.tx_hash}"}},"index":{one.index}}}' for one in spent])
        signatory = f'{{"key":"{self._filling(64)}","signature":"{self._filling(128)}"}}'
        parts = [
            f'{{"id":"{tx_hash}","spends":"inputs","inputs":[{inputs}],"outputs":[{",".join(map(self._output, paid))}],'
            f'"fee":{{"ada":{{"lovelace":{_FEE}}}}},"validityInterval":{{"invalidAfter":{slot + 7200}}},'
            f'"signatories":[{signatory},{signatory}]'
        ]
        if minted:
            parts.append(f'"mint":{{{_value(minted)}}}')
        if delegates:
            parts.append(f'"certificates":[{self._certificates()}]')
        if self._happens(_METADATA):
            parts.append(
                f'"metadata":{{"hash":"{self._filling(64)}","labels":{{"674":{{"cbor":"{self._filling(300)}",'
                f'"json":{{"msg":["{self._filling(60)}","{self._filling(60)}"]}}}}}}}}'
            )
        if self._happens(_SCRIPTS):
            parts.append(
                f'"redeemers":[{{"validator":{{"index":0,"purpose":"spend"}},"redeemer":"{self._filling(120)}",'
                f'"executionUnits":{{"memory":1230996,"cpu":275421638}}}}],"scripts":{{"{self._filling(56)}":'
                f'{{"language":"plutus:v2","cbor":"{self._filling(5_000)}"}}}}'
            )
        parts.append(f'"cbor":"{self._filling(2 * (700 + int(self._random.expovariate(1 / 700))))}"}}')
        return ",".join(parts)

    def _spend(self) -> _Unspent:
        if len(self._recent) > _RECENT_OUTPUTS:
            self._old += self._recent[: _RECENT_OUTPUTS // 4]
            del self._recent[: _RECENT_OUTPUTS // 4]
        unspent = self._recent if self._recent and self._happens(_FROM_RECENT) else self._old
        place = int(self._random.random() * len(unspent))
        unspent[place], unspent[-1] = unspent[-1], unspent[place]
        return unspent.pop()

    def _mint(self, spent: list[_Unspent]) -> dict[_Asset, int]:
        """Popular tokens at first, then mostly some assets of a single unit of one policy, and now and then a burn."""
        if self._minted < _TOKENS:
            self._minted += 1
            return {(self._policies[self._minted - 1], self._hex(8)): 10**15}
        if not self._happens(_MINTING):
            return {}
        if self._happens(0.2):
            return {asset: -quantity for one in spent for asset, quantity in list(one.assets.items())[:1]}
        policy_id = self._often(self._policies)
        return {(policy_id, self._hex(12)): 1 for _ in range(self._count(4))}

    def _pay(self, tx_hash: str, spent: list[_Unspent], left: int, assets: dict[_Asset, int]) -> list[_Unspent]:
        """Outputs of all that is left: the last goes back to a spender, the others to anybody.

        As many outputs as inputs carry assets, and one more while too few transactions have any.
        """
        self._with_assets += bool(assets)
        count = max(1, min(self._count(2.6), left // (2 * _LEAST_LOVELACE)))
        held: list[dict[_Asset, int]] = [{} for _ in range(count)]
        bundles = max(1, sum(bool(unspent.assets) for unspent in spent))
        spread = self._with_assets < self._transactions * _WITH_ASSETS
        for place, (asset, quantity) in enumerate(assets.items()):
            part = quantity // 3 if spread else 0
            if part:
                held[(place + 1) % count][asset] = part
            own = held[-1 - place % min(bundles, count)]
            own[asset] = own.get(asset, 0) + quantity - part
        lovelace = [
            _LEAST_LOVELACE + int((left - count * _LEAST_LOVELACE) * self._random.random() / count) for _ in held[1:]
        ]
        paid = [(self._address(), share) for share in lovelace]
        paid.append((spent[0].address, left - sum(lovelace)))
        return [_Unspent(tx_hash, index, *to, held[index]) for index, to in enumerate(paid)]

    def _address(self) -> str:
        if self._addresses and not self._happens(_NEW_ADDRESS):
            return self._often(self._addresses)
        if self._happens(_STAKED):
            if not self._accounts or self._happens(0.5):
                self._accounts.append(self._random.randbytes(28))
            raw = b"\x01" + self._random.randbytes(28) + self._often(self._accounts)
        else:
            raw = b"\x61" + self._random.randbytes(28)
        self._addresses.append(bech32_encode("addr", raw))
        return self._addresses[-1]

    def _output(self, output: _Unspent) -> str:
        assets = f",{_value(output.assets)}" if output.assets else ""
        datum = f',"datum":"{self._filling(240)}"' if self._happens(_DATUM) else ""
        return f'{{"address":"{output.address}","value":{{"ada":{{"lovelace":{output.lovelace}}}{assets}}}{datum}}}'

    def _certificates(self) -> str:
        """A new stake credential that delegates."""
        account = self._random.randbytes(28)
        self._accounts.append(account)
        credential = f'"from":"verificationKey","credential":"{account.hex()}"'
        return (
            f'{{"type":"stakeCredentialRegistration",{credential},"deposit":{{"ada":{{"lovelace":{_DEPOSIT}}}}}}},'
            f'{{"type":"stakeDelegation",{credential},"stakePool":{{"id":"{self._often(self._pools)}"}}}}'
        )

    def _count(self, mean: float) -> int:
        """At least one, and seldom many."""
        return 1 + int(self._random.expovariate(1 / (mean - 0.5)))

    def _often(self, known: list[_Thing]) -> _Thing:
        """One of the things, the first of them far more often than the last."""
        return known[int(len(known) * self._random.random() ** 3)]

    def _happens(self, chance: float) -> bool:
        return self._random.random() < chance

    def _hex(self, size_bytes: int) -> str:
        return self._random.randbytes(size_bytes).hex()

    def _filling(self, length: int) -> str:
        start = int(self._random.random() * (len(self._text) - length))
        return self._text[start : start + length]


def _sum(spent: list[_Unspent], minted: dict[_Asset, int]) -> dict[_Asset, int]:
    """What the outputs have to carry."""
    total = dict(minted)
    for unspent in spent:
        for asset, quantity in unspent.assets.items():
            total[asset] = total.get(asset, 0) + quantity
    return {asset: quantity for asset, quantity in total.items() if quantity}


def _value(assets: dict[_Asset, int]) -> str:
    """The members of a JSON object, by policy."""
    by_policy: dict[str, list[str]] = {}
    for (policy_id, name), quantity in assets.items():
        by_policy.setdefault(policy_id, []).append(f'"{name}":{quantity}')
    return ",".join([f'"{policy_id}":{{{",".join(names)}}}' for policy_id, names in by_policy.items()])
