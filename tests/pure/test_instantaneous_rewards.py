"""Certificates that move instantaneous rewards, read from the CBOR of transactions that follow the CDDL."""

from typing import Any

import cbor2
import msgspec
import pytest

from indexer.blocks import instantaneous_rewards
from indexer.ogmios import frames
from shared.packed import InstantaneousRewards

KEY, SCRIPT = (0, b"\5" * 28), (1, b"\7" * 28)
WITHDRAWALS: dict[str, Any] = {"action": {"type": "treasuryWithdrawals", "withdrawals": {}, "guardrails": None}}
REGISTRATION = [0, KEY]


def tx(*certificates: Any, cbor: bool = True, indefinite: bool = False) -> frames.Transaction:
    listed = b"".join(map(cbor2.dumps, certificates))
    array = b"\x9f" + listed + b"\xff" if indefinite else bytes([0x80 | len(certificates)]) + listed
    sent: dict[str, Any] = {"id": "00" * 32, "proposals": [WITHDRAWALS]}
    if cbor:
        body = b"\xa2\x00" + cbor2.dumps([[bytes(32), 0]]) + b"\x04" + array
        sent["cbor"] = (b"\x83" + body + bytes.fromhex("a0f6")).hex()
    return msgspec.json.decode(msgspec.json.encode(sent), type=frames.Transaction)


@pytest.mark.parametrize("indefinite", [False, True])
def test_each_is_at_its_place_with_its_pot_and_scripts_come_first(indefinite: bool) -> None:
    moved = tx(REGISTRATION, [6, [1, {KEY: 5, SCRIPT: -2}]], [6, [0, {KEY: 7}]], indefinite=indefinite)
    assert instantaneous_rewards.of(moved, "babbage") == [
        InstantaneousRewards(1, 1, {b"\1" + SCRIPT[1]: -2, b"\0" + KEY[1]: 5}),
        InstantaneousRewards(2, 0, {b"\0" + KEY[1]: 7}),
    ]
    paid = instantaneous_rewards.of(moved, "babbage")
    assert paid is not None and [*paid[0].amounts] == [b"\1" + SCRIPT[1], b"\0" + KEY[1]]


def test_what_moves_from_pot_to_pot_is_left_out() -> None:
    assert instantaneous_rewards.of(tx([6, [0, 9]], [6, [0, {KEY: 7}]]), "alonzo") == [
        InstantaneousRewards(1, 0, {b"\0" + KEY[1]: 7})
    ]


@pytest.mark.parametrize("sent", [tx([6, [0, {KEY: 7}]], cbor=False), tx([6, [2, {KEY: 7}]]), tx([6, "x"])])
def test_they_are_unknown_without_cbor_of_the_expected_shape(sent: frames.Transaction) -> None:
    assert instantaneous_rewards.of(sent, "mary") is None


def test_conway_has_none() -> None:
    assert instantaneous_rewards.of(tx([6, [0, {KEY: 7}]]), "conway") == []
