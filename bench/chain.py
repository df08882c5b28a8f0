"""Quickly generates chains shaped like mainnet from a seed, as Ogmios frames, for `bench.index` and others.

Every input resolves and every transaction balances, so the indexer does the same work as on a real chain. The shape is
the mean of mainnet's history: 2.5 inputs, 2.6 outputs, assets in a third of the transactions, a few addresses with most
of the outputs, most inputs from the last hour and the rest of any age, scripts that many transactions show. The parts
that the indexer skips (redeemers, CBOR) are text of the usual length. Addresses and stake credentials are derived from
their numbers, so a chain of many millions of transactions fits into memory and can be saved.
"""

import hashlib
import random
from array import array
from collections.abc import Iterator
from copy import copy
from typing import Any

import msgspec

from shared.encoding import bech32_encode

BLOCK_TRANSACTIONS = 20
BLOCK_SLOTS = 20
FIRST_SLOT = 133_660_800  # the first slot of a mainnet epoch
_GENESIS_OUTPUTS = 20_000
_GENESIS_LOVELACE = 10**12
_LEAST_LOVELACE = 10**6
_FEE = 200_000
_DEPOSIT = 2_000_000
_POOLS, _TOKENS, _PLUTUS_SCRIPTS = 300, 300, 300
_ORDERS, _EXCHANGES = 10, 50  # one address in ten may have its payment credential in common with others
_KEPT_TEXTS = 200_000  # of addresses, so that memory is bounded

# The number of unspent outputs that count as recent, and probabilities: that an input spends one of them, that an
# output goes to a new address, that this address has a stake part, that an output has a datum; the rest are per
# transaction.
# The assets of a spent output beyond _BUNDLED are burned, so that transactions do not grow with the chain.
_RECENT_OUTPUTS = 4_000
_BUNDLED = 8
_FROM_RECENT = 0.6
_NEW_ADDRESS = 0.25
_STAKED = 0.72
_DATUM = 0.2
_WITH_ASSETS = 0.35
_MINTING = 0.06
_METADATA = 0.25
_SCRIPTS = 0.15
_DELEGATION = 0.015

_Asset = tuple[str, str]
"""Policy id and asset name in hex."""


class _Unspent(msgspec.Struct, frozen=True, array_like=True, gc=False):
    tx_hash: str
    index: int
    address_no: int
    lovelace: int
    assets: dict[_Asset, int]


class _Saved(msgspec.Struct, frozen=True, array_like=True):
    """The state that changes while a chain is made."""

    random: tuple[int, tuple[int, ...], float | None]
    height: int
    slot: int
    ancestor: str
    account_of: bytes
    accounts: int
    old: list[_Unspent]
    recent: list[_Unspent]
    transactions: int
    with_assets: int
    minted: int


class Chain:
    """A chain in progress.

    `height` and `slot` are those of the next block. `genesis` is Shelley's genesis in Ogmios' format.
    """

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._seed = seed.to_bytes(8)
        self._text = self._random.randbytes(1 << 20).hex()
        self._policies = [self._hex(28) for _ in range(_TOKENS)]
        self._pools = [bech32_encode("pool", self._random.randbytes(28)) for _ in range(_POOLS)]
        # The account of each address, -1 for none. The first addresses are those of the genesis.
        self._account_of = array("i", [-1] * _GENESIS_OUTPUTS)
        self._accounts = 0
        self._texts: dict[int, str] = {}
        self.genesis = self._genesis()
        self._old = [
            _Unspent(hashlib.blake2b(self._raw(number), digest_size=32).hexdigest(), 0, number, _GENESIS_LOVELACE, {})
            for number in range(_GENESIS_OUTPUTS)
        ]
        self._recent: list[_Unspent] = []
        self.height, self.slot, self._ancestor = 0, FIRST_SLOT, self._hex(32)
        self._transactions = self._with_assets = self._minted = 0

    @classmethod
    def load(cls, seed: int, saved: bytes) -> "Chain":
        """Load the chain of this seed from its saved state."""
        chain, state = cls(seed), msgspec.msgpack.decode(saved, type=_Saved)
        chain._random.setstate(state.random)
        chain.height, chain.slot, chain._ancestor = state.height, state.slot, state.ancestor
        chain._account_of, chain._accounts = array("i", state.account_of), state.accounts
        chain._old, chain._recent = state.old, state.recent
        chain._transactions, chain._with_assets, chain._minted = state.transactions, state.with_assets, state.minted
        return chain

    def save(self) -> bytes:
        """The chain so far, for `load`."""
        state = _Saved(
            random=self._random.getstate(),
            height=self.height,
            slot=self.slot,
            ancestor=self._ancestor,
            account_of=self._account_of.tobytes(),
            accounts=self._accounts,
            old=self._old,
            recent=self._recent,
            transactions=self._transactions,
            with_assets=self._with_assets,
            minted=self._minted,
        )
        return msgspec.msgpack.encode(state)

    def branch(self, seed: int) -> "Chain":
        """Another chain from here on, with other transactions. It can spend only some of the old outputs, so that many
        branches of a long chain fit into memory.
        """
        twin = copy(self)
        twin._random = random.Random(seed)
        twin._old = twin._random.sample(self._old, min(len(self._old), _RECENT_OUTPUTS))
        twin._recent, twin._account_of, twin._texts = self._recent[:], self._account_of[:], {}
        twin.slot += 1
        return twin

    def frames(self, transactions: int) -> Iterator[bytes]:
        """Answers to `nextBlock` for the next blocks, with BLOCK_TRANSACTIONS transactions each."""
        for _ in range(transactions // BLOCK_TRANSACTIONS):
            height, slot, block_id = self.height, self.slot, self._hex(32)
            content = ",".join([self._transaction(slot) for _ in range(BLOCK_TRANSACTIONS)])
            yield (
                f'{{"jsonrpc":"2.0","method":"nextBlock","result":{{"direction":"forward","block":{{"type":"praos",'
                f'"era":"conway","id":"{block_id}","size":{{"bytes":50000}},"height":{height},"slot":{slot},'
                f'"ancestor":"{self._ancestor}","issuer":{{"verificationKey":"{height % _POOLS:064x}",'
                f'"vrfVerificationKey":"{self._filling(64)}","leaderValue":{{"proof":"{self._filling(160)}"}}}},'
                f'"transactions":[{content}]}},"tip":{{"slot":{slot},"id":"{block_id}","height":{height}}}}},"id":null}}'
            ).encode()
            self.height, self.slot, self._ancestor = height + 1, slot + BLOCK_SLOTS, block_id

    def _genesis(self) -> dict[str, Any]:
        """Initial funds, and the pools, which are registered from the beginning."""
        pools = {
            pool: {
                "id": pool,
                "vrfVerificationKeyHash": self._hex(32),
                "pledge": {"ada": {"lovelace": 10**11}},
                "cost": {"ada": {"lovelace": 170_000_000}},
                "margin": "1/50",
                "owners": [self._hex(28)],
                "relays": [{"type": "ipAddress", "ipv4": "192.0.2.1", "port": 3001}],
            }
            for pool in self._pools
        }
        return {
            "initialFunds": {
                self._address(number): {"ada": {"lovelace": _GENESIS_LOVELACE}} for number in range(_GENESIS_OUTPUTS)
            },
            "initialStakePools": {"stakePools": pools, "delegators": {}},
        }

    def _transaction(self, slot: int) -> str:
        self._transactions += 1
        tx_hash = self._hex(32)
        spent = [self._spend() for _ in range(self._count(2.5))]
        minted = self._mint(spent)
        delegates = self._happens(_DELEGATION)
        taken = _FEE + (_DEPOSIT if delegates else 0)
        while (left := sum(unspent.lovelace for unspent in spent) - taken) < _LEAST_LOVELACE:
            spent.append(self._spend())
        paid = self._pay(tx_hash, spent, left, _sum(spent, minted))
        self._recent += paid
        inputs = ",".join([f'{{"transaction":{{"id":"{output.tx_hash}"}},"index":{output.index}}}' for output in spent])
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
                f'"executionUnits":{{"memory":1230996,"cpu":275421638}}}}],"scripts":{{{self._script()}}},'
                + self._named(spent)
            )
        parts.append(f'"cbor":"{self._filling(2 * (700 + int(self._random.expovariate(1 / 700))))}"}}')
        return ",".join(parts)

    def _script(self) -> str:
        """A script witness; the first scripts are the most frequent."""
        start = self._often(_PLUTUS_SCRIPTS) * 2
        body = self._text[start : start + 5_000]
        digest = hashlib.blake2b(b"\x02" + bytes.fromhex(body), digest_size=28).hexdigest()
        return f'"{digest}":{{"language":"plutus:v2","cbor":"{body}"}}'

    def _named(self, spent: list[_Unspent]) -> str:
        """Two reference inputs, of which most transactions name the same, and collateral of any age with its return."""
        reads = [self._old[self._often(_PLUTUS_SCRIPTS)] for _ in range(2)]
        risked = self._old[int(self._random.random() * len(self._old))]
        references, collateral = (
            ",".join(f'{{"transaction":{{"id":"{output.tx_hash}"}},"index":{output.index}}}' for output in some)
            for some in (reads, [risked])
        )
        returned = f'{{"address":"{self._address(spent[0].address_no)}","value":{{"ada":{{"lovelace":3000000}}}}}}'
        return f'"references":[{references}],"collaterals":[{collateral}],"collateralReturn":{returned}'

    def _spend(self) -> _Unspent:
        if len(self._recent) > _RECENT_OUTPUTS:
            self._old += self._recent[: _RECENT_OUTPUTS // 4]
            del self._recent[: _RECENT_OUTPUTS // 4]
        unspent = self._recent if self._recent and self._happens(_FROM_RECENT) else self._old
        place = int(self._random.random() * len(unspent))
        unspent[place], unspent[-1] = unspent[-1], unspent[place]
        return unspent.pop()

    def _mint(self, spent: list[_Unspent]) -> dict[_Asset, int]:
        """Popular tokens at first, then mostly a few single-unit assets of one policy; burns keep bundles small."""
        if self._minted < _TOKENS:
            self._minted += 1
            return {(self._policies[self._minted - 1], self._hex(8)): 10**15}
        if not self._happens(_MINTING):
            return {asset: -quantity for output in spent for asset, quantity in list(output.assets.items())[_BUNDLED:]}
        policy_id = self._policies[self._often(_TOKENS)]
        return {(policy_id, self._hex(12)): 1 for _ in range(self._count(6))}

    def _pay(self, tx_hash: str, spent: list[_Unspent], left: int, assets: dict[_Asset, int]) -> list[_Unspent]:
        """Outputs of the whole remainder: the last goes back to a spender, the others to any address.

        The number of outputs with assets is that of inputs with assets, plus one while too few transactions have any.
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
        paid = [(self._payee(), share) for share in lovelace]
        paid.append((spent[0].address_no, left - sum(lovelace)))
        return [_Unspent(tx_hash, index, *to, held[index]) for index, to in enumerate(paid)]

    def _payee(self) -> int:
        """The number of an address, mostly a known one; the first ones are the most frequent."""
        known = len(self._account_of) - _GENESIS_OUTPUTS
        if known and not self._happens(_NEW_ADDRESS):
            return _GENESIS_OUTPUTS + self._often(known)
        account = -1
        if self._happens(_STAKED):
            if not self._accounts or self._happens(0.5):
                self._accounts += 1
            account = self._often(self._accounts)
        self._account_of.append(account)
        return len(self._account_of) - 1

    def _address(self, number: int) -> str:
        text = self._texts.get(number)
        if text is None:
            if len(self._texts) >= _KEPT_TEXTS:
                self._texts.clear()
            text = self._texts[number] = bech32_encode("addr", self._raw(number))
        return text

    def _raw(self, number: int) -> bytes:
        account = self._account_of[number]
        # As with the orders of an exchange: a few scripts, each with the stake part of whoever ordered.
        is_order = account >= 0 and number % _ORDERS == 0
        key = self._credential(b"payment", number // _ORDERS % _EXCHANGES if is_order else number)
        return b"\x61" + key if account < 0 else b"\x01" + key + self._credential(b"stake", account)

    def _credential(self, kind: bytes, number: int) -> bytes:
        return hashlib.blake2b(number.to_bytes(8), digest_size=28, key=self._seed, person=kind).digest()

    def _output(self, output: _Unspent) -> str:
        assets = f",{_value(output.assets)}" if output.assets else ""
        datum = f',"datum":"{self._filling(240)}"' if self._happens(_DATUM) else ""
        address = self._address(output.address_no)
        return f'{{"address":"{address}","value":{{"ada":{{"lovelace":{output.lovelace}}}{assets}}}{datum}}}'

    def _certificates(self) -> str:
        """A new stake credential that delegates."""
        account = self._credential(b"stake", self._accounts)
        self._accounts += 1
        credential = f'"from":"verificationKey","credential":"{account.hex()}"'
        return (
            f'{{"type":"stakeCredentialRegistration",{credential},"deposit":{{"ada":{{"lovelace":{_DEPOSIT}}}}}}},'
            f'{{"type":"stakeDelegation",{credential},"stakePool":{{"id":"{self._pools[self._often(_POOLS)]}"}}}}'
        )

    def _count(self, mean: float) -> int:
        """A random count: at least one, rarely many."""
        return 1 + int(self._random.expovariate(1 / (mean - 0.5)))

    def _often(self, count: int) -> int:
        """A random number below `count`; the first are by far the most frequent."""
        return int(count * self._random.random() ** 3)

    def _happens(self, chance: float) -> bool:
        return self._random.random() < chance

    def _hex(self, size_bytes: int) -> str:
        return self._random.randbytes(size_bytes).hex()

    def _filling(self, length: int) -> str:
        start = int(self._random.random() * (len(self._text) - length))
        return self._text[start : start + length]


def _sum(spent: list[_Unspent], minted: dict[_Asset, int]) -> dict[_Asset, int]:
    """The assets that the outputs must contain."""
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
