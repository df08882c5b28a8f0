"""What subscriptions must be told of a chain, in plain code, by the model of the ledger."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

from tests.chain.model import Json, Ledger, Transaction, bech32, bech32_payload, stake_address, stake_address_of

Named = tuple[str, str]
"""The name and the text of a subject; a kind without subjects has ("", "")."""

NOTHING: Named = ("", "")


class Told(NamedTuple):
    """An event: `what` is the hash of its transaction or its block, and what distinguishes it from others there."""

    kind: str
    subject: Named
    block_no: int
    block_hash: str
    what: tuple[Any, ...]
    received: int | None = None
    spent: int | None = None


class Happenings:
    """What happens on a chain of preview, block by block."""

    def __init__(self) -> None:
        self.ledger = Ledger("preview")
        self.epoch: int | None = None
        self.registered: set[str] = set()
        self.retiring: dict[str, int] = {}

    def forward(self, block: Json) -> list[Told]:
        txs = self.ledger.forward(block)
        place = block["height"], block["id"]
        told = [Told(kind, subject, *place, what) for kind, subject, what in self.of_block(block)]
        for tx in txs:
            told += [
                Told(kind, subject, *place, (tx.tx_hash, *what), received, spent)
                for kind, subject, what, received, spent in (*flows(tx), *mints(tx))
            ]
            for account, paid in tx.withdrawals.items():
                told.append(Told("withdrawal", ("stake_address", account), *place, (tx.tx_hash, paid), None, paid))
            told += [Told(kind, subject, *place, (tx.tx_hash, *what)) for kind, subject, what in self.certificates(tx)]
            told += [Told("metadata", ("label", label), *place, (tx.tx_hash,)) for label in tx.metadata]
        return told

    def of_block(self, block: Json) -> Iterator[tuple[str, Named, tuple[Any, ...]]]:
        epoch = self.ledger.clock.epoch_of(block["slot"])
        if epoch != self.epoch:
            self.epoch = epoch
            for pool in [pool for pool, at in self.retiring.items() if at <= epoch]:
                del self.retiring[pool]
                self.registered.discard(pool)
            yield "epoch", NOTHING, (epoch,)
        yield "block", NOTHING, (block["id"],)
        issuer = blake2b(bytes.fromhex(block["issuer"]["verificationKey"]), digest_size=28).digest()
        yield "pool", ("pool_id", bech32("pool", issuer)), ("block", block["id"])

    def certificates(self, tx: Transaction) -> Iterator[tuple[str, Named, tuple[Any, ...]]]:
        for certificate in tx.certificates:
            yield from votes(certificate)
            pool = certificate.get("stakePool", {}).get("id")
            match certificate["type"]:
                case "stakeDelegation" if pool is not None:
                    script = certificate["from"] == "script"
                    account = stake_address("preview", certificate["credential"], script=script)
                    yield "delegation", ("stake_address", account), (account, pool)
                    yield "delegation", ("pool_id", pool), (account, pool)
                case "stakePoolRegistration":
                    change = "update" if pool in self.registered else "registration"
                    self.registered.add(pool)
                    self.retiring.pop(pool, None)
                    yield "pool", ("pool_id", pool), (change,)
                case "stakePoolRetirement":
                    self.retiring[pool] = certificate["stakePool"]["retirementEpoch"]
                    yield "pool", ("pool_id", pool), ("retirement",)


def votes(certificate: Json) -> Iterator[tuple[str, Named, tuple[Any, ...]]]:
    if "delegateRepresentative" not in certificate:
        return
    who, type_ = certificate["delegateRepresentative"], certificate["type"].removeprefix("delegateRepresentative")
    if "id" in who:
        header = "23" if who["from"] == "script" else "22"
        id_ = bech32("drep", bytes.fromhex(header + who["id"]))
    else:
        id_ = {"abstain": "drep_always_abstain", "noConfidence": "drep_always_no_confidence"}[who["type"]]
    if type_ == "stakeDelegation":
        script = certificate["from"] == "script"
        account = stake_address("preview", certificate["credential"], script=script)
        what: tuple[Any, ...] = ("vote_delegation", id_, account)
        yield "governance", ("stake_address", account), what
    else:
        what = type_.lower(), id_, None
    yield "governance", ("drep_id", id_), what


Flow = tuple[str, Named, tuple[Any, ...], int | None, int | None]


def flows(tx: Transaction) -> Iterator[Flow]:
    moved: dict[Named, list[int | None]] = defaultdict(lambda: [None, None])
    made = [(0, output) for _, output in tx.outputs]
    spent = [(1, source) for _, source in tx.inputs if source is not None]
    for side, output in (*made, *spent):
        sums = Counter({("address", output.address): output.lovelace})
        account = stake_address_of(output.address)
        if account is not None:
            sums["stake_address", account] = output.lovelace
        if output.address.startswith("addr"):
            digest = bech32_payload(output.address)[1:29]
            sums["payment_credential", bech32("addr_vkh", digest)] = output.lovelace
        for (policy, name), quantity in output.assets.items():
            sums["asset", f"{policy}.{name}"] += quantity
            sums["policy_id", policy] += quantity
        for subject, quantity in sums.items():
            moved[subject][side] = (moved[subject][side] or 0) + quantity
    for subject, (received, sent) in moved.items():
        yield "transaction", subject, (), received, sent


def mints(tx: Transaction) -> Iterator[Flow]:
    for (policy, name), quantity in tx.mint.items():
        received, spent = (quantity, None) if quantity > 0 else (None, -quantity)
        for subject in (("asset", f"{policy}.{name}"), ("policy_id", policy)):
            yield "mint", subject, (f"{policy}.{name}", quantity), received, spent


def wanted(told: Iterable[Told], subjects: Iterable[Json]) -> list[Told]:
    """Those of which a subscription with these subjects is told, in a fixed order within each block."""
    by_name = {named(subject): subject for subject in subjects}
    return [each for each in told if (each.kind, each.subject) in by_name and passes(each, by_name)]


def named(subject: Json) -> tuple[str, Named]:
    rest = {name: text for name, text in subject.items() if name not in ("kind", "direction", "least_quantity")}
    return subject["kind"], next(iter(rest.items()), NOTHING)


def passes(told: Told, by_name: dict[tuple[str, Named], Json]) -> bool:
    subject = by_name[told.kind, told.subject]
    if told.received is None and told.spent is None:
        return True
    direction, least = subject.get("direction", "both"), int(subject.get("least_quantity", "0"))
    receives = told.received is not None and told.received >= least
    spends = told.spent is not None and told.spent >= least
    return (direction != "out" and receives) or (direction != "in" and spends)
