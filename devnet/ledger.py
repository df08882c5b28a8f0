"""The state of a chain and the rules that move it, for everything whose value or stake a block can change.

One `Ledger` follows one chain, from genesis or from anywhere (inputs from before are then unknown and skipped). It
believes blocks: what it is told to apply is valid. The generator asks it what is valid before it writes a transaction.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any, Self, TypeVar

import msgspec

from devnet import addresses, parameters
from devnet.addresses import Credential
from devnet.blocks import Genesis
from devnet.networks import Network

Json = dict[str, Any]
Reference = tuple[str, int]  # a transaction's id and an index
Asset = tuple[str, str]  # policy and name, both in hex

# Of what remains in reserve and the epoch's fees, in ten thousandths; a fifth of it goes to the treasury.
REWARD_RATE = 30


class Account(msgspec.Struct):
    """A registered stake credential."""

    deposit: int
    rewards: int = 0
    pool: str | None = None
    representative: Json | None = None


class Pool(msgspec.Struct):
    """A registered pool; `parameters` of its last certificate count from the next epoch on."""

    parameters: Json
    deposit: int
    retiring_epoch: int | None = None


class Proposal(msgspec.Struct, frozen=True):
    deposit: int
    return_account: Credential
    first_epoch: int
    last_epoch: int
    said: Json


class Ledger:
    def __init__(self, network: Network, genesis: Genesis) -> None:
        self.network = network
        self.epoch = 0
        self.unspent: dict[Reference, Json] = {}
        self.wallets: defaultdict[str, dict[Reference, None]] = defaultdict(dict)
        self.stakes: defaultdict[Credential, int] = defaultdict(int)
        self.supplies: defaultdict[Asset, int] = defaultdict(int)
        self.accounts: dict[Credential, Account] = {}
        self.pools: dict[str, Pool] = {}
        self.representatives: dict[Credential, int] = {}
        self.proposals: dict[Reference, Proposal] = {}
        self.treasury = 0
        self.fees = 0
        self.blocks_made: Counter[str] = Counter()
        # Stake by pool and credential at the last three epoch boundaries, the newest first.
        self.snapshots: tuple[dict[str, dict[Credential, int]], ...] = ({}, {}, {})
        # The newest of them without rewards, and what votes in this epoch: that snapshot by pool, and proposals.
        self.snapshot_of_outputs: dict[str, int] = {}
        self.voting_stakes: dict[str, int] = {}
        self.voted_on: dict[Reference, Proposal] = {}
        self.unknown_inputs = 0
        for address, lovelace in genesis_outputs(network, genesis):
            self._produce((addresses.genesis_output_id(address), 0), _output(address, lovelace))
        self.reserves = parameters.MAX_SUPPLY - sum(map(lovelace_of, self.unspent.values()))

    def copy(self) -> Self:
        """An independent ledger in the same state. Outputs are shared: nobody changes them."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        for name in ("unspent", "stakes", "supplies", "representatives", "proposals", "blocks_made"):
            setattr(twin, name, getattr(self, name).copy())
        twin.wallets = defaultdict(dict, {address: wallet.copy() for address, wallet in self.wallets.items() if wallet})
        twin.accounts = {credential: _twin(account) for credential, account in self.accounts.items()}
        twin.pools = {id_: _twin(pool) for id_, pool in self.pools.items()}
        return twin

    def apply(self, block: Json) -> None:
        """Follow a block; those before it have been applied."""
        if "slot" not in block:
            return
        self.enter(block["slot"])
        for tx in block.get("transactions", ()):
            self.apply_transaction(tx)
        self.count_block(block["issuer"]["verificationKey"])

    def enter(self, slot: int) -> None:
        """Cross the epoch boundaries up to a slot."""
        for epoch in range(self.epoch + 1, self.network.epoch_of(slot) + 1):
            self._reward()
            self.snapshots = (self._stake_by_pool(), *self.snapshots[:2])
            self.snapshot_of_outputs = {
                pool: sum(self.stakes[credential] for credential in members)
                for pool, members in self.snapshots[0].items()
            }
            self.epoch = epoch
            self._reap_pools()
            self._return_proposals()
            self._open_the_vote()

    def count_block(self, issuer: str) -> None:
        if len(issuer) == 64:  # Byron's keys are extended, and nobody's pool
            self.blocks_made[addresses.pool_id(bytes.fromhex(issuer))] += 1

    def apply_transaction(self, tx: Json) -> None:
        """Spend and pay; where the scripts failed, only the collateral changes hands."""
        if tx.get("spends") == "collaterals":
            self._apply_failure(tx)
            return
        spent = produced = 0
        for part in (*tx.get("subTransactions", ()), tx):
            spent += self._consume_all(part["inputs"])
            for index, output in enumerate(part.get("outputs", ())):
                self._produce((part["id"], index), output)
                produced += lovelace_of(output)
            self._apply_rest(part)
        self.fees += tx["fee"]["ada"]["lovelace"] if "fee" in tx else spent - produced

    def active_stakes(self) -> dict[str, int]:
        """Stake by pool that counts in this epoch: that of the snapshot taken two boundaries ago."""
        return {pool: sum(members.values()) for pool, members in self.snapshots[1].items()}

    def live_stakes(self) -> dict[str, int]:
        """Stake by pool as it is now: outputs and rewards of its delegators."""
        return {pool: sum(members.values()) for pool, members in self._stake_by_pool().items()}

    def total(self) -> int:
        """Every lovelace there is, wherever it lies: never changes."""
        return (
            self.reserves
            + self.treasury
            + self.fees
            + sum(map(lovelace_of, self.unspent.values()))
            + sum(account.deposit + account.rewards for account in self.accounts.values())
            + sum(pool.deposit for pool in self.pools.values())
            + sum(self.representatives.values())
            + sum(proposal.deposit for proposal in self.proposals.values())
        )

    def _apply_failure(self, tx: Json) -> None:
        lost = self._consume_all(tx["collaterals"])
        if change := tx.get("collateralReturn"):
            self._produce((tx["id"], len(tx.get("outputs", ()))), change)
            lost -= lovelace_of(change)
        self.fees += lost

    def _consume_all(self, inputs: list[Json]) -> int:
        spent = 0
        for source in inputs:
            reference = (source["transaction"]["id"], source["index"])
            output = self.unspent.pop(reference, None)
            if output is None:
                self.unknown_inputs += 1
                continue
            del self.wallets[output["address"]][reference]
            lovelace = lovelace_of(output)
            spent += lovelace
            if stake := addresses.stake_part(output["address"]):
                self.stakes[stake] -= lovelace
        return spent

    def _produce(self, reference: Reference, output: Json) -> None:
        address = output["address"]
        self.unspent[reference] = output
        self.wallets[address][reference] = None
        if stake := addresses.stake_part(address):
            self.stakes[stake] += lovelace_of(output)

    def _apply_rest(self, tx: Json) -> None:
        """Everything beside inputs and outputs, in the ledger's order: withdrawals come before certificates."""
        for address, value in tx.get("withdrawals", {}).items():
            if account := self.accounts.get(addresses.reward_credential(address)):
                account.rewards -= value["ada"]["lovelace"]
        for certificate in tx.get("certificates", ()):
            self._certify(certificate)
        for address, value in tx.get("credits", {}).items():
            self._credit(addresses.reward_credential(address), value["ada"]["lovelace"])
        for policy, names in tx.get("mint", {}).items():
            for name, quantity in names.items():
                self.supplies[policy, name] += quantity
        for index, proposal in enumerate(tx.get("proposals", ())):
            if "deposit" in proposal:
                self.proposals[tx["id"], index] = Proposal(
                    proposal["deposit"]["ada"]["lovelace"],
                    addresses.reward_credential(proposal["returnAccount"]),
                    self.epoch,
                    self.epoch + parameters.PROPOSAL_LIFETIME_EPOCHS,
                    proposal,
                )
        self.treasury += tx.get("treasury", {}).get("donation", _NOTHING)["ada"]["lovelace"]

    def _certify(self, certificate: Json) -> None:
        match certificate:
            case {"type": "stakeCredentialRegistration"}:
                self.accounts[_credential(certificate)] = Account(parameters.STAKE_DEPOSIT)
            case {"type": "stakeCredentialDeregistration"}:
                self.accounts.pop(_credential(certificate), None)
            case {"type": "stakeDelegation"}:
                account = self.accounts.get(_credential(certificate))
                if account and "stakePool" in certificate:
                    account.pool = certificate["stakePool"]["id"]
                if account and "delegateRepresentative" in certificate:
                    account.representative = certificate["delegateRepresentative"]
            case {"type": "stakePoolRegistration", "stakePool": pool}:
                known = self.pools.get(pool["id"])
                self.pools[pool["id"]] = Pool(pool, known.deposit if known else parameters.POOL_DEPOSIT)
            case {"type": "stakePoolRetirement", "stakePool": {"id": id_, "retirementEpoch": epoch}}:
                if id_ in self.pools:
                    self.pools[id_].retiring_epoch = epoch
            case {"type": "delegateRepresentativeRegistration", "delegateRepresentative": who, "deposit": deposit}:
                self.representatives[Credential(who["from"], who["id"])] = deposit["ada"]["lovelace"]
            case {"type": "delegateRepresentativeRetirement", "delegateRepresentative": who}:
                self.representatives.pop(Credential(who["from"], who["id"]), None)
                for account in self.accounts.values():
                    if account.representative == who:
                        account.representative = None

    def _credit(self, credential: Credential, lovelace: int) -> None:
        """Pay into a reward account, or to the treasury where there is none."""
        if account := self.accounts.get(credential):
            account.rewards += lovelace
        else:
            self.treasury += lovelace

    def _stake_by_pool(self) -> dict[str, dict[Credential, int]]:
        stakes: dict[str, dict[Credential, int]] = {id_: {} for id_ in self.pools}
        for credential, account in self.accounts.items():
            if account.pool in stakes:
                stakes[account.pool][credential] = self.stakes[credential] + account.rewards
        return stakes

    def _reward(self) -> None:
        """Pay the members of pools that made blocks, by stake; no more than the shape of Cardano's rewards."""
        made, self.blocks_made = self.blocks_made, Counter()
        made = Counter({pool: count for pool, count in made.items() if self.snapshots[1].get(pool)})
        pot = self.reserves * REWARD_RATE // 1_000_000 + self.fees
        self.reserves -= pot - self.fees
        self.fees = 0
        self.treasury += (tax := pot // 5)
        left = pot - tax
        for pool, count in sorted(made.items()):
            share, members = (pot - tax) * count // made.total(), self.snapshots[1][pool]
            stake = sum(members.values())
            for credential, lovelace in members.items():
                if stake and credential in self.accounts:
                    reward = share * lovelace // stake
                    self.accounts[credential].rewards += reward
                    left -= reward
        self.reserves += left

    def _reap_pools(self) -> None:
        """Pools whose time has come go; so do the delegations to them, and their deposits go home."""
        gone = {id_ for id_, pool in self.pools.items() if pool.retiring_epoch == self.epoch}
        for id_ in sorted(gone):
            pool = self.pools.pop(id_)
            self._credit(addresses.reward_credential(pool.parameters["rewardAccount"]), pool.deposit)
        if gone:
            for account in self.accounts.values():
                if account.pool in gone:
                    account.pool = None

    def _open_the_vote(self) -> None:
        """Pools vote with the snapshot just taken and their delegators' deposits for proposals (Conway: EPOCH)."""
        self.voted_on = dict(self.proposals)
        self.voting_stakes = {pool: sum(members.values()) for pool, members in self.snapshots[0].items() if members}
        for proposal in self.voted_on.values():
            account = self.accounts.get(proposal.return_account)
            if account and account.pool in self.voting_stakes:
                self.voting_stakes[account.pool] += proposal.deposit

    def _return_proposals(self) -> None:
        for reference, proposal in list(self.proposals.items()):
            if proposal.last_epoch < self.epoch:
                del self.proposals[reference]
                self._credit(proposal.return_account, proposal.deposit)


_Struct = TypeVar("_Struct", Account, Pool)
_NOTHING = parameters.ada(0)


def lovelace_of(output: Json) -> int:
    lovelace: int = output["value"]["ada"]["lovelace"]
    return lovelace


def genesis_outputs(network: Network, genesis: Genesis) -> Iterator[tuple[str, int]]:
    """(address, lovelace) of all that exists before the first block; a voucher lies at its redeem address."""
    magic = None if network.network_id else network.magic
    yield from genesis.byron_funds.items()
    yield from genesis.shelley_funds.items()
    for key, lovelace in genesis.byron_vouchers.items():
        yield addresses.byron_address(magic, bytes.fromhex(key)), lovelace


def _output(address: str, lovelace: int) -> Json:
    return {"address": address, "value": parameters.ada(lovelace)}


def _credential(certificate: Json) -> Credential:
    return Credential(certificate["from"], certificate["credential"])


def _twin(struct: _Struct) -> _Struct:
    return msgspec.structs.replace(struct)
