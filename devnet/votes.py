"""The part of the ledger that concerns votes: accounts' representatives, and their registration, by Conway's rules."""

from collections import Counter, defaultdict
from typing import Any

import msgspec

from devnet import parameters
from devnet.addresses import LedgerCredential

Json = dict[str, Any]
Reference = tuple[str, int]  # a transaction's id and an output's index


class StakeAccount(msgspec.Struct, frozen=True):
    """A registered stake credential."""

    deposit: int
    rewards: int = 0
    pool: str | None = None
    representative: Json | None = None


class Representative(msgspec.Struct, frozen=True):
    """A registered representative: its deposit, metadata, the last epoch in which it is active, without dormant epochs,
    and the set of its delegators. Until protocol 10, accounts in the set may delegate to others.
    """

    deposit: int
    anchor: Json | None
    expiry: int
    delegators: frozenset[LedgerCredential] = frozenset()


class Proposal(msgspec.Struct, frozen=True):
    """A governance proposal whose deposit has not been returned; `content` is Ogmios' JSON of it."""

    deposit: int
    return_account: LedgerCredential
    first_epoch: int
    last_epoch: int
    content: Json


class Votes:
    """The votes of a ledger. `versions` are (major protocol version, first epoch)."""

    def __init__(self, versions: tuple[tuple[int, int], ...]) -> None:
        self.versions = versions
        self.epoch = 0
        self.stakes: defaultdict[LedgerCredential, int] = defaultdict(int)  # in unspent outputs
        self.accounts: dict[LedgerCredential, StakeAccount] = {}
        self.representatives: dict[LedgerCredential, Representative] = {}
        self.proposals: dict[Reference, Proposal] = {}
        # The proposals under vote in this epoch, and the power of representatives in it, by credential or type.
        self.voted_on: dict[Reference, Proposal] = {}
        self.voting_power: Counter[str | LedgerCredential] = Counter()
        # How many epochs in a row began without a proposal to vote on.
        self.dormant_epochs = 0

    @property
    def major(self) -> int:
        """The major protocol version."""
        return self.major_in(self.epoch)

    def major_in(self, epoch: int) -> int:
        """The major protocol version in an epoch, 0 before the chain begins."""
        return max((major for major, first in self.versions if first <= epoch), default=0)

    def may_not_withdraw(self, credential: LedgerCredential) -> bool:
        """Whether a key's account needs a representative to withdraw (LEDGER: validateWithdrawalsDelegated)."""
        account = self.accounts.get(credential)
        return self.major >= 10 and not credential.is_script and (account is None or account.representative is None)

    def certify_representative(self, kind: str, who: LedgerCredential, certificate: Json) -> None:
        """Register, update or retire a representative (GOVCERT)."""
        match kind:
            case "delegateRepresentativeRegistration":
                # In protocol 9, dormant epochs are forgotten here (GOVCERT: computeDRepExpiryVersioned).
                expiry = self.epoch + parameters.DREP_ACTIVITY_EPOCHS if self.major == 9 else self._expiry()
                deposit = certificate["deposit"]["ada"]["lovelace"]
                self.representatives[who] = Representative(deposit, certificate.get("metadata"), expiry)
            case "delegateRepresentativeUpdate":
                self._change(who, anchor=certificate.get("metadata"), expiry=self._expiry())
            case "delegateRepresentativeRetirement":
                retired = self.representatives.pop(who, None)
                for credential in retired.delegators if retired else ():
                    if account := self.accounts.get(credential):
                        self.accounts[credential] = msgspec.structs.replace(account, representative=None)

    def delegate_vote(self, credential: LedgerCredential, representative: Json) -> None:
        """Give a registered account a representative, registered or not.

        Protocol 9 leaves the account in the set of its last one, unless the new one is predefined (DELEG:
        preserveIncorrectDelegation, cardano-ledger issue 4772).
        """
        account = self.accounts[credential]
        if self.major >= 10 or representative["type"] != "registered":
            self.leave_set(account.representative, credential)
        if representative["type"] == "registered":
            who = LedgerCredential(representative["from"], representative["id"])
            if known := self.representatives.get(who):
                self._change(who, delegators=known.delegators | {credential})
        self.accounts[credential] = msgspec.structs.replace(account, representative=representative)

    def leave_set(self, representative: Json | None, credential: LedgerCredential) -> None:
        """Remove an account from the set of its representative, if that is registered."""
        if representative is not None and representative["type"] == "registered":
            who = LedgerCredential(representative["from"], representative["id"])
            if known := self.representatives.get(who):
                self._change(who, delegators=known.delegators - {credential})

    def _change(self, who: LedgerCredential, **changes: Any) -> None:
        if known := self.representatives.get(who):
            self.representatives[who] = msgspec.structs.replace(known, **changes)

    def _expiry(self) -> int:
        """The expiry of a representative that acts now (GOVCERT: computeDRepExpiry)."""
        return self.epoch + parameters.DREP_ACTIVITY_EPOCHS - self.dormant_epochs

    def wake_representatives(self, tx: Json) -> None:
        """The first proposal after dormant epochs adds them to the expiry of each active representative; a vote renews
        that of the voter (CERTS: updateDormantDRepExpiries, updateVotingDRepExpiries).
        """
        if tx.get("proposals") and self.dormant_epochs:
            for who in self.representatives:
                self._change(who, expiry=self.actual_expiry(who))
            self.dormant_epochs = 0
        for vote in tx.get("votes", ()):
            if vote["issuer"]["role"] == "delegateRepresentative":
                self._change(LedgerCredential(vote["issuer"]["from"], vote["issuer"]["id"]), expiry=self._expiry())

    def actual_expiry(self, who: LedgerCredential) -> int:
        """The expiry with the present dormant epochs, unless it is over even so (CERTS: updateDormantDRepExpiry)."""
        expiry = self.representatives[who].expiry
        return expiry if expiry + self.dormant_epochs < self.epoch else expiry + self.dormant_epochs

    def begin_epoch_of_votes(self) -> None:
        """Count the epoch if it begins without a proposal to vote on (EPOCH: updateNumDormantEpochs); fork to protocol
        10 if it begins with that.
        """
        if self.major_in(self.epoch - 1) >= 9 and not any(
            proposal.last_epoch >= self.epoch for proposal in self.proposals.values()
        ):
            self.dormant_epochs += 1
        if (10, self.epoch) in self.versions:
            self._make_sets_anew()

    def _make_sets_anew(self) -> None:
        """The fork to protocol 10 makes the sets of delegators from the accounts, and ends the delegations to unknown
        representatives (HARDFORK: updateDRepDelegations).
        """
        for who in self.representatives:
            self._change(who, delegators=frozenset())
        for credential, account in self.accounts.items():
            representative = account.representative
            if representative is not None and representative["type"] == "registered":
                who = LedgerCredential(representative["from"], representative["id"])
                if known := self.representatives.get(who):
                    self._change(who, delegators=known.delegators | {credential})
                else:
                    self.accounts[credential] = msgspec.structs.replace(account, representative=None)

    def open_vote_of_representatives(self) -> None:
        """Set the voting power of representatives: outputs, rewards and proposal deposits of their delegators now."""
        deposits: Counter[LedgerCredential] = Counter()
        for proposal in self.voted_on.values():
            deposits[proposal.return_account] += proposal.deposit
        self.voting_power = Counter()
        for credential, account in self.accounts.items():
            if account.representative is not None:
                lovelace = self.stakes.get(credential, 0) + account.rewards + deposits[credential]
                self.voting_power[whom(account.representative)] += lovelace


def whom(representative: Json) -> str | LedgerCredential:
    """The credential of a representative, or the type of a predefined one."""
    if representative["type"] != "registered":
        return str(representative["type"])
    return LedgerCredential(representative["from"], representative["id"])
