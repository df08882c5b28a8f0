"""Compare what the index knows of the ledger with its node, by the table in `ledger/subjects.py`.

This is possible only at the tip of the index, while the node still has the ledger state of that block. Rewards and
stakes are compared only once all rewards of the epoch are read.
"""

import asyncpg

from indexer.ledger import comparisons
from indexer.ledger.comparisons import Tally
from indexer.ledger.reader import NotThere, acquire
from indexer.ledger.subjects import KINDS, SUBJECTS
from indexer.ogmios.connection import Ogmios
from indexer.verify.results import CheckResult, Difference
from shared.network import Network
from shared.network_state import Comparison


async def compare(db: asyncpg.Connection, node: Ogmios, network: Network, sample: float) -> list[Comparison] | None:
    """Compare the ledger state, and about `sample` percent of the accounts, with the node, at the tip of the index.

    None if the node does not have the ledger state of that block. Kinds that the index does not know yet, or of which
    the node tells nothing, are left out.
    """
    async with db.transaction(isolation="repeatable_read", readonly=True):
        at = await comparisons.at_tip(db, network, sample)
        assert at is not None, "verify has looked"
        tally = Tally()
        try:
            await acquire(node, at.position.point)
        except NotThere:
            return None
        for subject in SUBJECTS:
            first: int | None = 0
            while first is not None:
                batch = await subject.ours(at, first)
                theirs = None if batch is None else await comparisons.ask_node(subject, node, at, list(batch.things))
                if batch is None or theirs is None:
                    break
                tally.compare(subject, at, batch.things, theirs)
                first = batch.then
        return tally.comparisons(at.epoch_no)


def results(found: list[Comparison]) -> list[CheckResult]:
    """Comparisons as results of verify, by kind."""
    return [
        CheckResult(each.kind, [Difference(what.name, None, what.ours, what.node) for what in each.differences])
        for each in found
    ]


def in_words(found: list[Comparison] | None) -> str:
    """What was compared and what was not, for the operator."""
    if found is None:
        return "not compared: the node no longer has the ledger state of our tip"
    compared = ", ".join(f"{each.compared} of {each.kind}" for each in found)
    left_out = [kind for kind in KINDS if kind not in {each.kind for each in found}]
    more = f"; not compared: {', '.join(left_out)}" if left_out else ""
    return f"compared: {compared}{more}"


def last_in_words(found: list[Comparison]) -> str:
    """The comparison that the indexer made in an epoch, for the operator."""
    differing = ", ".join(f"{each.differing} of {each.compared} of {each.kind}" for each in found if each.differing)
    total = sum(each.compared for each in found)
    outcome = f"{differing} differ" if differing else "all match"
    return (
        f"{total} values of {len(found)} kinds compared with the node's ledger in epoch {found[0].epoch_no}: {outcome}"
    )
