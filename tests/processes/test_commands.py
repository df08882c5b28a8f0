"""Commands that can't do what they are asked to say so in one line."""

import pytest

from tests.chain.harness import Ledgerline


@pytest.mark.parametrize(
    "command", [["status"], ["resync", "--from-slot", "1"], ["verify"]], ids=lambda words: words[0]
)
@pytest.mark.parametrize("wrong", ["_not_there", "?sslmode=bogus"])
def test_an_unusable_database_is_told_in_one_line(ledgerline: Ledgerline, command: list[str], wrong: str) -> None:
    ledgerline.settings["DATABASE_URL"] += wrong
    told = ledgerline.run("indexer", *command, "--network", "preview")
    assert told.returncode == 1
    assert len(told.stderr.splitlines()) == 1, told.stderr


def test_a_slot_beyond_all_slots_is_refused(ledgerline: Ledgerline) -> None:
    told = ledgerline.run("indexer", "resync", "--network", "preview", "--from-slot", str(1 << 64))
    assert told.returncode == 2
    assert "--from-slot" in told.stderr
