"""Who votes for whom: the devnet's ledger and the model agree."""

from devnet.addresses import LedgerCredential
from tests.chain.harness import Json
from tests.chain.voting import CASES, account_of, cases, modelled, played, staker_of


def named(found: dict[LedgerCredential, Json], expected: dict[LedgerCredential, Json]) -> list[str]:
    """The cases whose representative is another than expected."""
    return [
        name for number, name in enumerate(CASES, 1) if found.get(staker_of(number)) != expected.get(staker_of(number))
    ]


def test_devnet_and_model_play_every_case() -> None:
    chain, expected = cases()
    assert named(played(chain), expected) == []
    assert modelled(chain) == {account_of(who): each for who, each in expected.items()}
