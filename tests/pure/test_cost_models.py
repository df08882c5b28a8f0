"""Cost models have the ledger's names, in its order, as clients of Blockfrost read them."""

import re

import pycardano.plutus
import pytest

from api.blockfrost import cost_models
from devnet import parameters

LENGTHS = {"PlutusV1": (166, 332), "PlutusV2": (175, 185, 332), "PlutusV3": (251, 297, 350)}  # after each hard fork


def test_the_names_are_those_of_a_client_in_the_same_order() -> None:
    """pycardano has a table of its own, and sorts the names of the first language, as many clients do."""
    assert [*cost_models.named("PlutusV2", range(175))] == [*pycardano.plutus.PLUTUS_V2_COST_MODEL]
    first = [*cost_models.named("PlutusV1", range(166))]
    assert first == sorted(first)


@pytest.mark.parametrize(("language", "length"), [(name, length) for name, all_ in LENGTHS.items() for length in all_])
def test_every_parameter_has_one_name(language: str, length: int) -> None:
    named = cost_models.named(language, range(length))
    assert [*named.values()] == [*range(length)]
    assert all(re.fullmatch(r"[a-z]\w+-(cpu|memory|exBudget)[\w-]+", name) for name in named)


def test_the_newest_cost_models_of_the_devnet_are_named() -> None:
    for language, costs in parameters.cost_models(11).items():
        named = cost_models.named(language.replace("plutus:v", "PlutusV"), costs)
        assert [*named.values()] == costs
        assert not any(name.startswith("parameter-") for name in named)


@pytest.mark.parametrize(("language", "known"), [("PlutusV3", 355), ("PlutusV4", 0)])
def test_names_beyond_the_known_ones_keep_the_order_in_javascript(language: str, known: int) -> None:
    """JavaScript moves keys that are numbers to the front."""
    named = cost_models.named(language, range(known + 120))
    assert [*named.values()] == [*range(known + 120)]
    assert [*named][known:] == [f"parameter-{at:03}" for at in range(known, known + 120)]
