"""The answers that the API must give about stake pools, without rewards; see model.py."""

from collections import defaultdict
from fractions import Fraction
from hashlib import blake2b

from tests.chain.model import Json, Ledger, Transaction, bech32, bech32_payload, stake_address, stake_address_of
from tests.chain.model_votes import Forks, Votes


class Pools:
    """Certificates in their order, blocks per pool, and the stake snapshot at each epoch boundary.

    Pools and epochs follow the ledger's rules: at an epoch's first block the snapshot is taken first, then retiring
    pools are reaped and the delegations to them end for good.
    """

    def __init__(self, ledger: Ledger, forks: Forks) -> None:
        self.ledger = ledger
        self.votes = Votes(forks)
        self.epoch = 0
        self.parameters: dict[str, Json] = {}
        self.retiring: dict[str, int] = {}
        self.retired: set[str] = set()
        self.delegations: dict[str, tuple[str, int]] = {}  # stake address -> pool, epoch of the certificate
        self.registered: set[str] = set()
        self.delegated: dict[str, list[Json]] = defaultdict(list)  # stake address -> all its delegations
        self.blocks: dict[str, int] = defaultdict(int)
        self.blocks_in_epoch: dict[tuple[str, int], int] = defaultdict(int)
        self.returned: dict[str, list[tuple[int, str]]] = defaultdict(list)  # stake address -> epoch, pool reaped then
        # The same boundary -> pool -> stake address -> lovelace.
        self.members: dict[int, dict[str, dict[str, int]]] = {}
        self.snapshots: dict[int, dict[str, int]] = {}  # epoch that the boundary opened -> pool -> lovelace

    def enter(self, epoch: int) -> None:
        """Cross the boundaries up to an epoch, before the block that opens it is applied."""
        while self.epoch < epoch:
            self.epoch += 1
            self.votes.enter(self.epoch)
            self.snapshots[self.epoch] = self.live_stakes()
            self.members[self.epoch] = self.by_pool()
            reaped = {pool for pool, at in self.retiring.items() if at == self.epoch}
            for pool in reaped:
                del self.retiring[pool]
                self.retired.add(pool)
                account = self.parameters.get(pool, {}).get("rewardAccount")
                if account in self.registered:
                    self.returned[account].append((self.epoch, pool))
            self.delegations = {
                account: delegation for account, delegation in self.delegations.items() if delegation[0] not in reaped
            }

    def forward(self, block: Json, transactions: list[Transaction]) -> None:
        if block["era"] != "byron":
            issuer = blake2b(bytes.fromhex(block["issuer"]["verificationKey"]), digest_size=28).digest()
            self.blocks[bech32("pool", issuer)] += 1
            self.blocks_in_epoch[bech32("pool", issuer), self.epoch] += 1
        for tx in transactions:
            for certificate in tx.certificates:
                self.certify(certificate)
                self.note(certificate, tx)

    def certify(self, certificate: Json) -> None:
        kind, pool = certificate["type"], certificate.get("stakePool", {})
        if kind == "stakePoolRegistration":
            self.parameters[pool["id"]] = pool
            self.retiring.pop(pool["id"], None)
            self.retired.discard(pool["id"])
        elif kind == "stakePoolRetirement":
            self.retiring[pool["id"]] = pool["retirementEpoch"]
        elif kind == "stakeCredentialDeregistration":
            self.delegations.pop(self.account(certificate), None)
        elif "id" in pool:
            self.delegations[self.account(certificate)] = (pool["id"], self.epoch)

    def note(self, certificate: Json, tx: Transaction) -> None:
        """Keep the data of answers about accounts: registrations and all delegations."""
        kind, pool = certificate["type"], certificate.get("stakePool", {})
        if kind == "stakeCredentialRegistration":
            self.registered.add(self.account(certificate))
        elif kind == "stakeCredentialDeregistration":
            self.registered.discard(self.account(certificate))
        elif kind == "stakeDelegation" and "id" in pool:
            self.registered.add(self.account(certificate))  # before the first block, if it was not seen
            at = {"tx_hash": tx.tx_hash, "slot_no": tx.slot, "block_time": self.ledger.clock.time(tx.slot)}
            self.delegated[self.account(certificate)].append(
                {"pool_id": pool["id"], "active_epoch_no": self.epoch + 2, "transaction": at}
            )
        self.votes.certify(certificate, self.account(certificate) if "credential" in certificate else "")

    def account(self, certificate: Json) -> str:
        script = certificate.get("from") == "script"
        return stake_address(self.ledger.network, certificate["credential"], script)

    def balances(self) -> dict[str, int]:
        """Unspent lovelace by stake address."""
        balances: dict[str, int] = defaultdict(int)
        for output in self.ledger.unspent.values():
            account = stake_address_of(output.address)
            if account is not None:
                balances[account] += output.lovelace
        return balances

    def live_stakes(self) -> dict[str, int]:
        balances = self.balances()
        stakes: dict[str, int] = defaultdict(int)
        for account, (pool, _) in self.delegations.items():
            stakes[pool] += balances.get(account, 0)
        return stakes

    def by_pool(self) -> dict[str, dict[str, int]]:
        """The delegators of pools, with the lovelace at their addresses."""
        balances = self.balances()
        members: dict[str, dict[str, int]] = defaultdict(dict)
        for account, (pool, _) in self.delegations.items():
            members[pool][account] = balances.get(account, 0)
        return members

    def active_stake(self, pool: str) -> int:
        """The active snapshot of epoch N is from the end of N-2: the boundary into N-1 takes it."""
        return self.snapshots.get(self.epoch - 1, {}).get(pool, 0)

    def delegators(self, pool: str) -> list[Json]:
        """All rows of GET /v1/pools/:poolId/delegators/list, greatest first."""
        balances = self.balances()
        rows = [
            {"stake_address": account, "amount": str(balances.get(account, 0)), "active_epoch_no": epoch + 2}
            for account, (delegated, epoch) in self.delegations.items()
            if delegated == pool
        ]
        return sorted(rows, key=lambda row: -int(str(row["amount"])))

    def status(self, pool: str) -> str:
        if pool in self.retired:
            return "retired"
        return "retiring" if pool in self.retiring else "active"

    def info(self, pool: str) -> Json:
        """GET /v1/pools/:poolId, without its saturation, which can't be derived from blocks."""
        known = self.parameters[pool]
        metadata = known.get("metadata") or {}
        delegators = self.delegators(pool)
        return {
            "pool_id": pool,
            "pool_id_hex": bech32_payload(pool).hex(),
            "vrf_key_hash": known["vrfVerificationKeyHash"],
            "pledge": str(known["pledge"]["ada"]["lovelace"]),
            "margin": float(Fraction(known["margin"])),
            "fixed_cost": str(known["cost"]["ada"]["lovelace"]),
            "reward_account": known["rewardAccount"],
            "owners": [stake_address(self.ledger.network, owner, script=False) for owner in known["owners"]],
            "relays": [shown for relay in known["relays"] if (shown := relay_of(relay)) is not None],
            "metadata_url": metadata.get("url"),
            "metadata_hash": metadata.get("hash"),
            "active_stake": str(self.active_stake(pool)),
            "live_stake": str(sum(int(row["amount"]) for row in delegators)),
            "delegator_count": len(delegators),
            "blocks_minted": self.blocks[pool],
            "blocks_epoch": self.blocks_in_epoch[pool, self.epoch],
            "status": self.status(pool),
            "retiring_epoch": self.retiring.get(pool),
        }


def relay_of(relay: Json) -> Json | None:
    """A relay always has a port, 0 for none, and either an IPv4 address or a name; an IPv6 address alone is its name.

    A relay with neither can't be shown.
    """
    port = relay.get("port", 0)
    if "ipv4" in relay:
        return {"port": port, "ipv4": relay["ipv4"]}
    name = relay.get("hostname", relay.get("ipv6"))
    return None if name is None else {"port": port, "dns": name}
