"""Who votes for whom, by the rules of Conway as cardano-ledger writes them; see model.py.

- Each account has at most one representative. Each registered representative has a set of delegators, which begins
  empty (GOVCERT: ConwayRegDRep).
- A delegation gives the account its new representative. If that is registered, the account enters its set (DELEG).
- It leaves the set of its last representative, if that is registered. Not so in protocol 9, unless the new one always
  abstains or has no confidence (DELEG: preserveIncorrectDelegation).
- In protocol 9 an unregistered representative may be chosen; nothing enters its set, as it has none (DELEG).
- A deregistered account leaves the set of the representative that it has, and of no other (DELEG: ConwayUnRegCert).
- If a representative retires, every account in its set has no representative, whomever it had (GOVCERT:
  ConwayUnRegDRep).
- At the first slot of the epoch that begins with protocol 10, accounts of unregistered representatives have none, and
  the sets are those of the others (HARDFORK: updateDRepDelegations).
"""

from tests.chain.model import Json

FORKS = {"mainnet": ((10, 537), (11, 644)), "preview": ((10, 743),), "preprod": ((10, 181),)}
"""(major protocol version, first epoch) within Conway, of the public networks."""

Forks = tuple[tuple[int, int], ...]


class Votes:
    """The votes so far. `forks` are (major protocol version, first epoch) within Conway."""

    def __init__(self, forks: Forks) -> None:
        self.protocol_10 = min((epoch for major, epoch in forks if major >= 10), default=None)
        self.epoch = 0
        self.representatives: dict[str, Json] = {}  # account -> its representative
        self.sets: dict[str, set[str]] = {}  # the name of a registered representative -> accounts
        self.registered: dict[str, Json] = {}  # its name -> its deposit and metadata

    def enter(self, epoch: int) -> None:
        """Begin the next epoch."""
        self.epoch = epoch
        if epoch == self.protocol_10:
            for account, representative in list(self.representatives.items()):
                if is_credential(representative) and name(representative) not in self.sets:
                    del self.representatives[account]
            for each in self.sets:
                self.sets[each] = {account for account, who in self.representatives.items() if name(who) == each}

    def certify(self, certificate: Json, account: str) -> None:
        """Apply a certificate; `account` is that of its credential, if it has one."""
        kind, who = certificate["type"], certificate.get("delegateRepresentative")
        if kind == "delegateRepresentativeRegistration":
            self.sets[name(who)] = set()
            self.registered[name(who)] = {"deposit": certificate["deposit"], "metadata": certificate.get("metadata")}
        elif kind == "delegateRepresentativeUpdate":
            self.registered.get(name(who), {})["metadata"] = certificate.get("metadata")
        elif kind == "delegateRepresentativeRetirement":
            self.registered.pop(name(who), None)
            for each in self.sets.pop(name(who), set()):
                self.representatives.pop(each, None)
        elif kind == "stakeCredentialDeregistration":
            self.leave(account)
            self.representatives.pop(account, None)
        elif who is not None:
            if self.in_protocol_10() or not is_credential(who):
                self.leave(account)
            self.representatives[account] = who
            if name(who) in self.sets:
                self.sets[name(who)].add(account)

    def leave(self, account: str) -> None:
        """Take an account out of the set of its representative, if that is registered."""
        if account in self.representatives:
            self.sets.get(name(self.representatives[account]), set()).discard(account)

    def in_protocol_10(self) -> bool:
        return self.protocol_10 is not None and self.epoch >= self.protocol_10


def is_credential(representative: Json) -> bool:
    return "id" in representative


def name(representative: Json | None) -> str:
    assert representative is not None
    return f"{representative.get('from')} {representative.get('id', representative['type'])}"
