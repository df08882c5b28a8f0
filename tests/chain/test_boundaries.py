"""The index has what its node's ledger has at each epoch's boundary, and each rule is needed for that."""

from collections import Counter
from collections.abc import Callable

import pytest

from devnet.generator import Generated, Options, options_of
from devnet.server import NodeServer
from indexer.ledger import comparisons
from indexer.ledger.subjects import KINDS
from indexer.ogmios import connection as ogmios
from indexer.store import eras, votes
from indexer.verify.node import ledger_state
from shared import database
from shared.address import show_stake
from shared.network import PREVIEW
from shared.network_state import Comparison
from tests.chain.boundaries import differences_at_each_boundary
from tests.chain.followers import following, reaches
from tests.chain.voting import CASES, cases, raw, staker_of

OF_TWENTY_EPOCHS = Options(
    seed=39,
    blocks_per_epoch=4,
    density=3,
    plain=0.1,
    era_epochs=20,
    eras=(("babbage", 0), ("conway", 5)),
    forks=((10, 10), (11, 15)),
)


@pytest.mark.timeout(600)
async def test_nothing_differs_at_any_boundary_from_protocol_8_to_11(database_url: str) -> None:
    """The campaign `tests/campaigns/boundaries.py` does the same for 200 epochs, and with vouchers."""
    chain, compared, epochs = Generated(OF_TWENTY_EPOCHS, 1), Counter[str](), 0

    def tell(_: int, found: list[Comparison]) -> None:
        nonlocal epochs
        epochs += 1
        compared.update({each.kind: each.compared for each in found})

    assert await differences_at_each_boundary(database_url, chain, 19, tell) == []
    assert epochs == 19
    assert {kind for kind in KINDS if not compared[kind]} == set()


def _without(statement: str, part: str, instead: str) -> Callable[[pytest.MonkeyPatch], None]:
    """Change a rule in a statement of `store/votes.sql`."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        command = getattr(votes, statement)
        assert part in command.text
        monkeypatch.setattr(command, "text", command.text.replace(part, instead))

    return patch


# Rule that is switched off -> how, and a case of which the account must be named.
RULES: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    "the fork to 10 ends delegations to unknown representatives": (
        _without("_end_by_fork", "WHERE length(representative) = 29", "WHERE false"),
        "in 9, an unregistered one",
    ),
    "in 9, a retirement ends the delegations of those who moved on": (
        _without("_end_by_retirement", "WHEN EXISTS (SELECT FROM protocol_fork)", "WHEN true"),
        "in 9, a retirement ends what followed",
    ),
    "in 10, it does not": (
        _without("_end_by_retirement", "WHEN EXISTS (SELECT FROM protocol_fork)", "WHEN false"),
        "the fork forgets who was left",
    ),
    "in 9, a predefined one leaves the set": (
        _without("_end_by_retirement", "length(next.representative) = 29", "length(next.representative) > 0"),
        "in 9, a predefined one leaves the last set",
    ),
    "a registration begins with an empty set": (
        _without("_end_by_retirement", "(delegated.tx_id, delegated.place) < (r.tx_id, r.place)", "false"),
        "a set begins empty",
    ),
    "a retirement ends delegations": (
        _without("_end_by_retirement", "now.representative IS NOT NULL", "false"),
        "a retirement after the fork",
    ),
}


@pytest.mark.parametrize("rule", RULES)
async def test_without_a_rule_the_comparison_names_the_account(
    database_url: str, monkeypatch: pytest.MonkeyPatch, rule: str
) -> None:
    switch_off, case = RULES[rule]
    switch_off(monkeypatch)
    chain, _ = cases()
    async with NodeServer(chain) as node, following(database_url, node) as task:
        db, connection = await database.connect(database_url, PREVIEW), await ogmios.connect(node.url)
        try:
            await reaches(db, node, task)
            monkeypatch.setattr(comparisons, "MAX_NAMED", len(CASES))
            found = await ledger_state.compare(db, connection, PREVIEW, 100.0)
        finally:
            await connection.close()
            await db.close()
    assert found is not None
    differing = {each.kind: {named.name for named in each.differences} for each in found if each.differing}
    assert differing.keys() == {"account_representative"}
    assert show_stake(raw(staker_of([*CASES].index(case) + 1))) in differing["account_representative"]


async def test_without_the_rule_for_vouchers_the_comparison_names_their_addresses(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = "is_redeem_address(raw)"
    assert part in eras._drop_outputs.text
    monkeypatch.setattr(eras._drop_outputs, "text", eras._drop_outputs.text.replace(part, "false"))
    chain = Generated(options_of("preprod", seed=3, blocks_per_epoch=4, density=3), 1)
    first_of_allegra = dict(chain.eras)["allegra"]
    found = await differences_at_each_boundary(database_url, chain, first_of_allegra, lambda *_: None)
    wrong = [each for each in found if not each.startswith(f"epoch {first_of_allegra}, genesis_output of ")]
    assert (len(found) > 0, wrong) == (True, [])
    lost = set(chain.cast.voucher_addresses)
    assert {each.split(" of ")[1].split(" ")[0] for each in found} <= lost
