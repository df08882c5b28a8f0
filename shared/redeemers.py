"""Reads from the bytes of a transaction its redeemers, the script that each one is for, and its required signers. Pure.

Keys and numbers are those of the CDDL of Alonzo to Dijkstra. A redeemer points to a place among the things of its
purpose, in the ledger's order (`redeemerPointerInverse` in cardano-ledger).
"""

from collections.abc import Callable, Mapping, Sequence
from hashlib import blake2b
from typing import Literal, get_args

import msgspec

from shared.cbor import BYTES, MAP, Malformed, Reader, parts_of, unsigned

Purpose = Literal["spend", "mint", "cert", "reward", "vote", "propose", "guard"]
"""What a script decides on, by its number in a redeemer, under the names of cardano-db-sync."""

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)
_SPEND, _MINT, _CERTIFICATE, _REWARD, _VOTE, _PROPOSE, _GUARD = range(7)

# Keys of the body; since Dijkstra the required signers are guards, which may be scripts.
_INPUTS, _CERTIFICATES, _WITHDRAWALS, _MINTED, _REQUIRED_SIGNERS, _VOTES, _PROPOSALS = 0, 4, 5, 9, 14, 19, 20
_REDEEMERS = 5  # of the witnesses
_KEY, _SCRIPT = 0, 1  # of a credential
_SCRIPT_BIT = 0x10  # in the first byte of a reward account
_POLICY_AT = {0: 3, 2: 2}  # its place in the actions that have one: changes of parameters, withdrawals of the treasury

# The certificates that a credential witnesses, which is number 1 in each. A registration without a deposit needs none.
_WITNESSED = frozenset((1, 2, *range(7, 19)))

_Fields = Callable[[int], list[int]]
"""The positions of the parts of a field by its key; none if it is absent."""


class Redeemer(msgspec.Struct, frozen=True):
    """A redeemer. `index` is a place among the things of its purpose; `data_hash` is the hash of its data's own bytes.

    `script_hash` is None for the purpose `spend`: it is in the address of the output `spends`, a hash and an index. It
    is also None if the redeemer points to nothing that a script decides on.
    """

    purpose: Purpose
    index: int
    data_hash: bytes
    memory: int
    cpu: int
    script_hash: bytes | None
    spends: tuple[bytes, int] | None


class ScriptParts(msgspec.Struct, frozen=True):
    """The redeemers by index, then in the order of purposes, and the hashes of required keys in the order of bytes."""

    redeemers: list[Redeemer]
    required_signers: list[bytes]


def parse(cbor: bytes) -> ScriptParts:
    """The parts of a transaction that concern scripts. Raises Malformed."""
    parts = _starts(cbor, 0)
    if len(parts) < 2:
        raise Malformed("a transaction must have a body and witnesses")
    if Reader(cbor, parts[0]).next_major() != MAP:
        return ScriptParts([], [])  # of Byron
    body, witnesses = _fields(cbor, parts[0]), _map(cbor, parts[1])
    inputs = sorted(_reference(cbor, each) for each in body(_INPUTS))
    pointed = _scripts(cbor, body)
    found = [
        Redeemer(
            purpose=PURPOSES[purpose],
            index=index,
            data_hash=blake2b(data, digest_size=32).digest(),
            memory=memory,
            cpu=cpu,
            script_hash=pointed[purpose][index] if index < len(pointed[purpose]) else None,
            spends=inputs[index] if purpose == _SPEND and index < len(inputs) else None,
        )
        for (purpose, index), (data, memory, cpu) in _redeemers(cbor, witnesses.get(_REDEEMERS)).items()
    ]
    signers = [key for each in body(_REQUIRED_SIGNERS) if (key := _credential(cbor, each, _KEY)) is not None]
    return ScriptParts(sorted(found, key=lambda each: (each.index, PURPOSES.index(each.purpose))), sorted(signers))


def _scripts(cbor: bytes, body: _Fields) -> Mapping[int, Sequence[bytes | None]]:
    """The hash of the script at each place of each purpose; None where none decides."""
    accounts = [_byte_string(cbor, each) for each in body(_WITHDRAWALS)[::2]]
    voters = [(_number(cbor, kind), _byte_string(cbor, who)) for kind, who in _pairs(cbor, body(_VOTES)[::2])]
    # NOTE: in the ledger's order of credentials, scripts come before keys.
    accounts.sort(key=lambda account: (not account[0] & _SCRIPT_BIT, account[1:]))
    voters.sort(key=lambda voter: (voter[0] // 2, voter[0] % 2 != _SCRIPT, voter[1]))
    return {
        _SPEND: (),
        _MINT: sorted(_byte_string(cbor, policy) for policy in body(_MINTED)[::2]),
        _CERTIFICATE: [_certificate_script(cbor, each) for each in body(_CERTIFICATES)],
        _REWARD: [account[1:] if account[0] & _SCRIPT_BIT else None for account in accounts],
        _VOTE: [who if kind % 2 == _SCRIPT else None for kind, who in voters],
        _PROPOSE: [_proposal_policy(cbor, each) for each in body(_PROPOSALS)],
        _GUARD: [_credential(cbor, each, _SCRIPT) for each in body(_REQUIRED_SIGNERS)],
    }


def _redeemers(cbor: bytes, start: int | None) -> Mapping[tuple[int, int], tuple[bytes, int, int]]:
    """Data, memory and steps by purpose and index. Of two at the same place, the last counts, as in the ledger."""
    if start is None:
        return {}
    starts = _starts(cbor, start)
    if Reader(cbor, start).next_major() == MAP:
        each = [
            [*_starts(cbor, key), *_starts(cbor, value)] for key, value in zip(starts[::2], starts[1::2], strict=True)
        ]
    else:
        each = [_starts(cbor, redeemer) for redeemer in starts]
    found = {}
    for redeemer in each:
        purpose, index, data, units = _exactly(4, redeemer)
        if _number(cbor, purpose) >= len(PURPOSES):
            raise Malformed(f"the purpose of a redeemer must be below {len(PURPOSES)} (byte {purpose})")
        memory, cpu = _exactly(2, _starts(cbor, units))
        place = _number(cbor, purpose), _number(cbor, index)
        found[place] = (Reader(cbor, data).skip(), _number(cbor, memory), _number(cbor, cpu))
    return found


def _certificate_script(cbor: bytes, start: int) -> bytes | None:
    kind, *rest = _starts(cbor, start)
    return _credential(cbor, rest[0], _SCRIPT) if rest and _number(cbor, kind) in _WITNESSED else None


def _proposal_policy(cbor: bytes, start: int) -> bytes | None:
    """The guardrails' policy in the action of a proposal."""
    _, _, action, _ = _exactly(4, _starts(cbor, start))
    kind, *rest = _starts(cbor, action)
    at = _POLICY_AT.get(_number(cbor, kind), 0)
    if not at or at > len(rest) or Reader(cbor, rest[at - 1]).next_major() != BYTES:
        return None
    return _byte_string(cbor, rest[at - 1])


def _credential(cbor: bytes, start: int, kind: int) -> bytes | None:
    """The hash of a credential of that kind; None for another kind. A bare hash is that of a key."""
    if Reader(cbor, start).next_major() == BYTES:
        return _byte_string(cbor, start) if kind == _KEY else None
    number, digest = _exactly(2, _starts(cbor, start))
    return _byte_string(cbor, digest) if _number(cbor, number) == kind else None


def _reference(cbor: bytes, start: int) -> tuple[bytes, int]:
    tx_hash, index = _exactly(2, _starts(cbor, start))
    return _byte_string(cbor, tx_hash), _number(cbor, index)


def _pairs(cbor: bytes, starts: Sequence[int]) -> list[list[int]]:
    return [_exactly(2, _starts(cbor, start)) for start in starts]


def _fields(cbor: bytes, start: int) -> _Fields:
    found = _map(cbor, start)
    return lambda key: _starts(cbor, found[key]) if key in found else []


def _map(cbor: bytes, start: int) -> dict[int | None, int]:
    """The positions of the values of a map by its keys; None stands for those that are not numbers."""
    starts = _starts(cbor, start)
    return {unsigned(cbor, key): value for key, value in zip(starts[::2], starts[1::2], strict=True)}


def _starts(cbor: bytes, start: int) -> list[int]:
    """The positions of the items of an array or a map, after any tags."""
    return [part.start for part in parts_of(cbor, start)]


def _exactly(count: int, starts: list[int]) -> list[int]:
    if len(starts) != count:
        raise Malformed(f"an array must have {count} items, not {len(starts)}")
    return starts


def _number(cbor: bytes, start: int) -> int:
    return Reader(cbor, start).unsigned(f"the item at byte {start}")


def _byte_string(cbor: bytes, start: int) -> bytes:
    return Reader(cbor, start).byte_string(f"the item at byte {start}")
