"""The ledger state of a chain, and the rules by which blocks change it.

One `Ledger` follows one chain, from genesis or from any later block (it skips inputs whose outputs it never saw). It
applies blocks without validating them. The generator reads it so that it makes only valid transactions.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Iterator
from copy import copy
from operator import itemgetter
from typing import Any, Self

import msgspec

from devnet import addresses, bodies, parameters
from devnet.addresses import LedgerCredential
from devnet.blocks import Block, Chain, Genesis
from devnet.networks import Network
from devnet.votes import Proposal, Reference, StakeAccount, Votes

Json = dict[str, Any]
Asset = tuple[str, str]  # policy and name, both in hex

MONETARY_EXPANSION = 30  # of the reserves, in millionths per epoch


class Pool(msgspec.Struct, frozen=True):
    """A registered pool. A registration of a pool that exists sets `next_parameters`, for the next epoch on."""

    parameters: Json
    deposit: int
    retiring_epoch: int | None = None
    next_parameters: Json | None = None


class RewardPot(msgspec.Struct, frozen=True):
    """What the end of an epoch distributes: the fees of the epoch, and incentives from the reserves."""

    fees: int
    incentives: int

    @property
    def tax(self) -> int:
        """The treasury's part."""
        return (self.fees + self.incentives) // 5

    @property
    def rewards(self) -> int:
        """The pools' part. What they do not get goes back to the reserves."""
        return self.fees + self.incentives - self.tax

    def shares(self, made: Counter[str], members: dict[str, dict[LedgerCredential, int]]) -> dict[str, int]:
        """The rewards by pool, in proportion to its blocks; none for pools without members."""
        counted = {pool: count for pool, count in sorted(made.items()) if members.get(pool)}
        total = sum(counted.values())
        return {pool: self.rewards * count // total for pool, count in counted.items()}


class Undo(msgspec.Struct):
    """The previous state of the part of the ledger that a block changed."""

    state: dict[str, Any]  # the attributes in _KEPT_WHOLE
    spent: dict[Reference, tuple[Json, int]] = msgspec.field(default_factory=dict)  # with the numbers in `wallets`
    produced: list[Reference] = msgspec.field(default_factory=list)
    stakes: dict[LedgerCredential, int | None] = msgspec.field(default_factory=dict)
    supplies: dict[Asset, int | None] = msgspec.field(default_factory=dict)


# Attributes that are small enough to copy before each block. Their dicts contain frozen values.
_KEPT_WHOLE = (
    "era", "epoch", "treasury", "donations", "moved", "reserves", "vouchers", "fees", "accounts", "pools",
    "representatives", "dormant_epochs", "proposals", "blocks_made", "stake_snapshots", "stake_snapshot_of_outputs",
    "voting_stakes", "voting_power", "voted_on", "committee", "unknown_inputs", "outputs_produced",
)  # fmt: skip


class Ledger(Votes):
    """The state after the first `length` blocks of a chain.

    `rewind` undoes up to 2,160 blocks, as many as a real node can roll back.
    """

    def __init__(self, network: Network, genesis: Genesis, versions: tuple[tuple[int, int], ...] | None = None) -> None:
        """`versions` are (major protocol version, first epoch), by default those of the public network."""
        super().__init__(parameters.versions(network.eras, network.forks) if versions is None else versions)
        self.network = network
        self.genesis = genesis
        self.length = 0
        self.era = "byron"
        self.unspent: dict[Reference, Json] = {}
        # The unspent outputs of each address, numbered and listed in the order of their production.
        self.wallets: defaultdict[str, dict[Reference, int]] = defaultdict(dict)
        self.outputs_produced = 0
        self.supplies: defaultdict[Asset, int] = defaultdict(int)
        self.pools: dict[str, Pool] = {}
        self.treasury = 0
        self.donations = 0  # of this epoch, for the treasury of the next (Conway rule EPOCH)
        self.moved: list[bodies.Moved] = []  # instantaneous rewards that the end of the epoch pays (Shelley rule MIR)
        self.fees = 0
        self.reserves = 0
        self.vouchers: set[Reference] = set()  # that Byron left unspent, until Allegra begins
        self.blocks_made: Counter[str] = Counter()
        # Stake by pool and credential at the last three epoch boundaries, the newest first.
        self.stake_snapshots: tuple[dict[str, dict[LedgerCredential, int]], ...] = ({}, {}, {})
        # Stake by pool in the newest snapshot, without rewards.
        self.stake_snapshot_of_outputs: dict[str, int] = {}
        # The voting power of each pool in this epoch.
        self.voting_stakes: dict[str, int] = {}
        # What members of the constitutional committee have declared, in Ogmios' JSON: a delegate, or that they resign.
        self.committee: dict[LedgerCredential, Json] = {}
        self.unknown_inputs = 0
        self._undo = Undo({})
        for address, lovelace in genesis_outputs(network, genesis):
            self._produce((addresses.genesis_output_id(address), 0), _output(address, lovelace))
        self.reserves = parameters.MAX_SUPPLY - sum(map(lovelace_of, self.unspent.values()))
        self._undo = Undo({name: copy(getattr(self, name)) for name in _KEPT_WHOLE})
        self._undos: deque[Undo] = deque(maxlen=parameters.SECURITY_PARAMETER)

    @classmethod
    def at_genesis(cls, chain: Chain) -> Self:
        """The ledger of a chain before its first block."""
        return cls(chain.network, chain.genesis, parameters.versions(chain.eras, chain.forks))

    def copy(self) -> Self:
        """An independent ledger in the same state. Both share outputs, which never change."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        for name in ("unspent", "stakes", "supplies", "_undos", *_KEPT_WHOLE):
            setattr(twin, name, copy(getattr(self, name)))
        twin.wallets = defaultdict(dict, {address: wallet.copy() for address, wallet in self.wallets.items() if wallet})
        twin._undo = Undo(*map(copy, msgspec.structs.astuple(self._undo)))
        return twin

    def rewind(self, length: int) -> None:
        """Return to the state after the first `length` blocks, or to genesis if that is more than 2,160 blocks back."""
        if self.length - length > len(self._undos):
            vars(self).update(vars(Ledger(self.network, self.genesis, self.versions)))
            return
        restored: set[str] = set()
        undo = self._undo
        self._take_back(undo, restored)
        for _ in range(self.length - length):
            undo = self._undos.pop()
            self._take_back(undo, restored)
        for address in restored:
            self.wallets[address] = dict(sorted(self.wallets[address].items(), key=itemgetter(1)))
        for name, value in undo.state.items():
            setattr(self, name, copy(value))
        self._undo = Undo(undo.state)
        self.length = length

    def advance(self, blocks: list[Block], length: int) -> None:
        """Apply those of the first `length` blocks of a chain that this ledger has not applied yet."""
        for block in blocks[self.length : length]:
            self.apply(block.decoded())

    def apply(self, block: Json) -> None:
        """Apply the block after the last one applied."""
        if "slot" in block:  # an epoch boundary block has neither slot nor content
            self.begin_era(block["era"])
            self.enter(block["slot"])
            for tx in block.get("transactions", ()):
                self.apply_transaction(tx)
            self.count_block(block["issuer"]["verificationKey"])
        self.finish_block()

    def finish_block(self) -> None:
        """End a block that was applied piece by piece, so that `rewind` can return to its end."""
        before = self._undo.state
        self._undos.append(self._undo)
        self._undo = Undo({name: _kept(getattr(self, name), before[name]) for name in _KEPT_WHOLE})
        self.length += 1

    def begin_era(self, era: str) -> None:
        """Enter the era of the next block, before `enter`: without Byron's outputs of no lovelace, and from Allegra on
        without the vouchers that nobody redeemed, whose lovelace goes to the reserves (cardano-ledger,
        `translateToShelleyLedgerStateFromUtxo` and `returnRedeemAddrsToReserves`).
        """
        if self.era == "byron" != era:
            byron = {key: output for key, output in self.unspent.items() if not output["address"].startswith("addr")}
            self._remove({key for key, output in byron.items() if not lovelace_of(output)})
            self.vouchers = {key for key, output in byron.items() if addresses.is_voucher(output["address"])}
        if era not in ("byron", "shelley") and self.vouchers:
            self.reserves += self._remove(self.vouchers)
            self.vouchers = set()
        self.era = era

    def enter(self, slot: int) -> None:
        """Apply the epoch boundaries up to a slot."""
        for epoch in range(self.epoch + 1, self.network.epoch_of(slot) + 1):
            self._pay_rewards()
            self._pay_instantaneous_rewards()
            self.stake_snapshots = (self._stake_by_pool(), *self.stake_snapshots[:2])
            self.stake_snapshot_of_outputs = {
                pool: sum(self.stakes.get(credential, 0) for credential in members)
                for pool, members in self.stake_snapshots[0].items()
            }
            self.epoch = epoch
            self._reap_pools()
            self._return_proposals()
            self.begin_epoch_of_votes()
            self._open_the_vote()

    def count_block(self, issuer: str) -> None:
        """Credit a block to the pool whose cold key is `issuer`."""
        if len(issuer) == 64:  # Byron's issuers have longer keys and no pools
            self.blocks_made[addresses.pool_id(bytes.fromhex(issuer))] += 1

    def apply_transaction(self, tx: Json) -> None:
        """Apply a transaction; if its scripts failed, only its collateral is spent."""
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

    def reward_pot(self) -> RewardPot:
        """What the end of this epoch distributes, if it comes now."""
        return RewardPot(self.fees, self.reserves * MONETARY_EXPANSION // 1_000_000)

    def active_stakes(self) -> dict[str, int]:
        """Stake by pool that is active in this epoch: the snapshot from two boundaries ago."""
        return {pool: sum(members.values()) for pool, members in self.stake_snapshots[1].items()}

    def live_stakes(self) -> dict[str, int]:
        """Current stake by pool: unspent outputs and rewards of its delegators."""
        return {pool: sum(members.values()) for pool, members in self._stake_by_pool().items()}

    def total(self) -> int:
        """All lovelace in existence, wherever it is held. It never changes."""
        return (
            self.reserves
            + self.treasury
            + self.donations
            + self.fees
            + sum(map(lovelace_of, self.unspent.values()))
            + sum(account.deposit + account.rewards for account in self.accounts.values())
            + sum(pool.deposit for pool in self.pools.values())
            + sum(representative.deposit for representative in self.representatives.values())
            + sum(proposal.deposit for proposal in self.proposals.values())
        )

    def _apply_failure(self, tx: Json) -> None:
        lost = self._consume_all(tx["collaterals"])
        if change := tx.get("collateralReturn"):
            self._produce((tx["id"], len(tx.get("outputs", ()))), change)
            lost -= lovelace_of(change)
        self.fees += lost

    def _remove(self, references: set[Reference]) -> int:
        """Remove those of these outputs of Byron that are still unspent. Returns their lovelace."""
        present = references & self.unspent.keys()
        return self._consume_all([{"transaction": {"id": id_}, "index": index} for id_, index in sorted(present)])

    def _consume_all(self, inputs: list[Json]) -> int:
        spent = 0
        for source in inputs:
            reference = (source["transaction"]["id"], source["index"])
            output = self.unspent.pop(reference, None)
            if output is None:
                self.unknown_inputs += 1
                continue
            self._undo.spent[reference] = (output, self.wallets[output["address"]].pop(reference))
            spent += lovelace_of(output)
            self._add_stake(output["address"], -lovelace_of(output))
        return spent

    def _produce(self, reference: Reference, output: Json) -> None:
        address = output["address"]
        self.unspent[reference] = output
        self.wallets[address][reference] = self.outputs_produced
        self.outputs_produced += 1
        self._undo.produced.append(reference)
        self._add_stake(address, lovelace_of(output))

    def _add_stake(self, address: str, lovelace: int) -> None:
        if credential := addresses.stake_part(address):
            self._undo.stakes.setdefault(credential, self.stakes.get(credential))
            self.stakes[credential] += lovelace

    def _take_back(self, undo: Undo, restored: set[str]) -> None:
        """Undo a block, except in `state`; adds to `restored` the addresses whose wallets must be sorted again."""
        for reference, (output, number) in undo.spent.items():
            self.unspent[reference] = output
            self.wallets[output["address"]][reference] = number
            restored.add(output["address"])
        for reference in undo.produced:
            output = self.unspent.pop(reference)
            del self.wallets[output["address"]][reference]
        _restore(self.stakes, undo.stakes)
        _restore(self.supplies, undo.supplies)

    def _apply_rest(self, tx: Json) -> None:
        """Apply everything except inputs and outputs, in the ledger's order: withdrawals before certificates."""
        for address, value in tx.get("withdrawals", {}).items():
            self._add_reward(addresses.reward_credential(address), -value["ada"]["lovelace"])
        self.wake_representatives(tx)
        for certificate in tx.get("certificates", ()):
            self._certify(certificate)
        for address, value in tx.get("credits", {}).items():
            self._credit(addresses.reward_credential(address), value["ada"]["lovelace"])
        for policy, names in tx.get("mint", {}).items():
            for name, quantity in names.items():
                self._undo.supplies.setdefault((policy, name), self.supplies.get((policy, name)))
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
        self.moved += bodies.moved_in(tx)
        self.donations += tx.get("treasury", {}).get("donation", _NOTHING)["ada"]["lovelace"]

    def _certify(self, certificate: Json) -> None:
        match certificate:
            case {"type": "stakePoolRegistration", "stakePool": pool}:
                known = self.pools.get(pool["id"], Pool(pool, parameters.POOL_DEPOSIT))
                later = pool if pool["id"] in self.pools else None
                self.pools[pool["id"]] = Pool(known.parameters, known.deposit, None, later)
            case {"type": "stakePoolRetirement", "stakePool": {"id": id_, "retirementEpoch": epoch}}:
                if pool := self.pools.get(id_):
                    self.pools[id_] = msgspec.structs.replace(pool, retiring_epoch=epoch)
            case {"type": str(kind), "delegateRepresentative": who} if "credential" not in certificate:
                self.certify_representative(kind, LedgerCredential(who["from"], who["id"]), certificate)
            case {"type": "constitutionalCommitteeDelegation", "member": who, "delegate": delegate}:
                self.committee[LedgerCredential(who["from"], who["id"])] = delegate
            case {"type": "constitutionalCommitteeRetirement", "member": who}:
                anchor = {"metadata": certificate["metadata"]} if "metadata" in certificate else {}
                self.committee[LedgerCredential(who["from"], who["id"])] = {"status": "resigned", **anchor}
            case {"type": str(kind), "credential": str(hash_), "from": str(origin)}:
                self._certify_account(kind, LedgerCredential(origin, hash_), certificate)

    def _certify_account(self, kind: str, credential: LedgerCredential, certificate: Json) -> None:
        match kind:
            case "stakeCredentialRegistration":
                self.accounts[credential] = StakeAccount(parameters.STAKE_DEPOSIT)
            case "stakeCredentialDeregistration":
                if account := self.accounts.pop(credential, None):
                    self.leave_set(account.representative, credential)
            case "stakeDelegation":
                # An unknown one was registered before the first block.
                account = self.accounts.get(credential, StakeAccount(parameters.STAKE_DEPOSIT))
                pool = certificate["stakePool"]["id"] if "stakePool" in certificate else account.pool
                self.accounts[credential] = msgspec.structs.replace(account, pool=pool)
                if "delegateRepresentative" in certificate:
                    self.delegate_vote(credential, certificate["delegateRepresentative"])

    def _add_reward(self, credential: LedgerCredential, lovelace: int) -> bool:
        """Change the balance of a reward account; False if the credential is not registered.

        NOTE: a withdrawal may take rewards from before the first block, which are unknown.
        """
        account = self.accounts.get(credential)
        if account:
            rewards = max(account.rewards + lovelace, 0)
            self.accounts[credential] = msgspec.structs.replace(account, rewards=rewards)
        return account is not None

    def _credit(self, credential: LedgerCredential, lovelace: int) -> None:
        """Pay into a reward account, or into the treasury if the credential is not registered."""
        if not self._add_reward(credential, lovelace):
            self.treasury += lovelace

    def _stake_by_pool(self) -> dict[str, dict[LedgerCredential, int]]:
        stakes: dict[str, dict[LedgerCredential, int]] = {id_: {} for id_ in self.pools}
        for credential, account in self.accounts.items():
            if account.pool in stakes:
                stakes[account.pool][credential] = self.stakes.get(credential, 0) + account.rewards
        return stakes

    def _pay_rewards(self) -> None:
        """Pay the delegators of pools that made blocks, in proportion to stake: a rough form of Cardano's rewards. Pay
        the treasury its share, and the donations of the epoch.
        """
        pot = self.reward_pot()
        shares = pot.shares(self.blocks_made, self.stake_snapshots[1])
        self.blocks_made = Counter()
        self.reserves -= pot.incentives
        self.fees = 0
        self.treasury += pot.tax + self.donations
        self.donations = 0
        left = pot.rewards
        for pool, share in shares.items():
            members = self.stake_snapshots[1][pool]
            stake = sum(members.values())
            for credential, lovelace in members.items():
                reward = share * lovelace // stake if stake else 0
                if self._add_reward(credential, reward):
                    left -= reward
        self.reserves += left

    def _pay_instantaneous_rewards(self) -> None:
        """Pay registered accounts out of the pots."""
        for pot, amounts in self.moved:
            paid = sum(lovelace for who, lovelace in amounts.items() if self._add_reward(who, lovelace))
            setattr(self, pot, getattr(self, pot) - paid)
        self.moved = []

    def _reap_pools(self) -> None:
        """Begin with pools' new parameters, and remove the pools that retire in this epoch (Shelley rule POOLREAP):
        return their deposits and end the delegations to them.
        """
        for id_, pool in self.pools.items():
            if pool.next_parameters is not None:
                self.pools[id_] = Pool(pool.next_parameters, pool.deposit, pool.retiring_epoch)
        reaped = {id_ for id_, pool in self.pools.items() if pool.retiring_epoch == self.epoch}
        for id_ in sorted(reaped):
            pool = self.pools.pop(id_)
            self._credit(addresses.reward_credential(pool.parameters["rewardAccount"]), pool.deposit)
        for credential, account in self.accounts.items():
            if account.pool in reaped:
                self.accounts[credential] = msgspec.structs.replace(account, pool=None)

    def _open_the_vote(self) -> None:
        """Set the voting stakes: the newest snapshot, and proposal deposits of delegators (Conway rule EPOCH)."""
        self.voted_on = dict(self.proposals)
        self.voting_stakes = {
            pool: sum(members.values()) for pool, members in self.stake_snapshots[0].items() if members
        }
        for proposal in self.voted_on.values():
            account = self.accounts.get(proposal.return_account)
            if account and account.pool in self.voting_stakes:
                self.voting_stakes[account.pool] += proposal.deposit
        self.open_vote_of_representatives()

    def _return_proposals(self) -> None:
        """Return the deposits of expired proposals."""
        for reference, proposal in list(self.proposals.items()):
            if proposal.last_epoch < self.epoch:
                del self.proposals[reference]
                self._credit(proposal.return_account, proposal.deposit)


_NOTHING = parameters.ada(0)


def lovelace_of(output: Json) -> int:
    lovelace: int = output["value"]["ada"]["lovelace"]
    return lovelace


def genesis_outputs(network: Network, genesis: Genesis) -> Iterator[tuple[str, int]]:
    """(address, lovelace) of the outputs that exist before the first block; vouchers are at redeem addresses."""
    magic = None if network.address_tag else network.magic
    yield from genesis.byron_funds.items()
    yield from genesis.shelley_funds.items()
    for key, lovelace in genesis.byron_vouchers.items():
        yield addresses.byron_address(magic, bytes.fromhex(key)), lovelace


def _output(address: str, lovelace: int) -> Json:
    return {"address": address, "value": parameters.ada(lovelace)}


def _kept(now: Any, before: Any) -> Any:
    """The value to keep for undoing: `before` if the two are equal, also in order, which `==` of dicts ignores."""
    if now is before or (now == before and (not isinstance(now, dict) or list(now) == list(before))):
        return before
    return copy(now)


def _restore(changed: dict[Any, int], before: dict[Any, int | None]) -> None:
    for key, value in before.items():
        if value is None:
            del changed[key]
        else:
            changed[key] = value
