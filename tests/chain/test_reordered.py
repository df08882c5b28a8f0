"""Forks of recorded chains: they obey the ledger's rules, and a small part of the campaign runs on one of them."""

import pytest

from devnet.blocks import Recorded
from tests.campaigns.recorded import Campaign
from tests.chain import reordered
from tests.chain.fixtures import NewLedgerline
from tests.chain.model_chain import Chain
from tests.chain.recordings import FILES

FILE = FILES["reference-tokens"]


@pytest.fixture(scope="module")
def recording() -> Recorded:
    return FILE.played()


@pytest.mark.parametrize("seed", range(3))
def test_a_fork_satisfies_the_dependencies_of_its_transactions(recording: Recorded, seed: int) -> None:
    """Fewer transactions in another order: outputs are made before they are spent, and blocks follow their parents."""
    after = 200
    forked = reordered.fork(recording.blocks, after, seed)
    assert forked[: after + 1] == recording.blocks[: after + 1]
    for parent, block in zip(forked[after:], forked[after + 1 :], strict=False):
        assert block.ancestor == parent.id
        assert block.height == parent.height + 1
        assert block.slot > parent.slot
    whole = Chain("preview").feed(block.decoded() for block in recording.blocks).ledger
    other = Chain("preview").feed(block.decoded() for block in forked).ledger
    assert other.transactions.keys() < whole.transactions.keys()
    assert len(other.transactions) > 0.5 * len(whole.transactions)
    assert [*other.transactions] != [each for each in whole.transactions if each in other.transactions]
    for tx_hash, tx in other.transactions.items():
        assert dict(tx.inputs) == dict(whole.transactions[tx_hash].inputs)


def test_answers_are_correct_after_forks_of_a_recorded_chain(
    new_ledgerline: NewLedgerline, recording: Recorded
) -> None:
    campaign = Campaign(new_ledgerline(), recording, [], 1, {"forked": 20})
    campaign.run(processes=1)
    assert campaign.wrong == []
