"""Every path of Blockfrost's document is in the façade's table, and answers are checked against the document."""

import re
from typing import Any

import pytest

from api.blockfrost.not_answered import POSTED, REASONS
from api.blockfrost.routes import FACADE
from api.blockfrost.shape import ROOT
from api.route import Router
from tests import blockfrost_schemas
from tests.blockfrost_schemas import DOCUMENT, plain

PATHS = [(method, path, said) for path, methods in DOCUMENT["paths"].items() for method, said in methods.items()]
TX: dict[str, Any] = dict.fromkeys(("index", "slot", "block_height", "block_time", "size", "utxo_count"), 1)
TX |= {name: 0 for name in DOCUMENT["schemas"]["tx_content"]["properties"] if name.endswith("_count")}
TX |= dict.fromkeys(("hash", "block", "fees", "deposit"), "1") | {"invalid_before": None, "invalid_hereafter": None}
TX |= {"output_amount": [{"unit": "lovelace", "quantity": "1"}], "valid_contract": True, "treasury_donation": "0"}
TX |= dict.fromkeys(blockfrost_schemas.NOT_KEPT.get("/txs/{}", ()))


def test_every_path_of_the_document_is_answered_or_refused_with_a_reason() -> None:
    """Otherwise its answer is 404, which Blockfrost's clients read as: never used."""
    router = Router(FACADE)
    for method, path, _ in PATHS:
        route, _ = router.find(method, ROOT + re.sub(r"\{\w+\}", "x", path))
        assert (path in REASONS) == (route.handler.__module__ == "api.blockfrost.not_answered"), path


def test_every_path_of_the_table_is_in_the_document() -> None:
    known = {(method, plain(path)) for method, path, _ in PATHS}
    assert {(route.method, plain(route.path.removeprefix(ROOT))) for route in FACADE} <= known
    assert {(("POST" if path in POSTED else "GET"), path) for path in REASONS} <= {each[:2] for each in PATHS}


def test_every_answered_list_takes_the_documents_parameters() -> None:
    router = Router(FACADE)
    for method, path, said in PATHS:
        route, _ = router.find(method, ROOT + re.sub(r"\{\w+\}", "x", path))
        assert path in REASONS or {*said["query"]} <= {field.name for field in route.fields}, path


def test_an_answer_that_keeps_to_the_document_passes() -> None:
    blockfrost_schemas.check("/txs/{hash}", TX)


@pytest.mark.parametrize(
    "wrong",
    [
        {"fees": None},  # not nullable
        {"fees": 1},  # another type
        {"fee": "1"},  # unknown
        {"output_amount": [{"unit": "ada", "quantity": "1"}]},  # another format
        {"output_amount": [{"unit": "lovelace"}]},  # a required member is missing
        dict.fromkeys(blockfrost_schemas.NOT_KEPT.get("/txs/{}", ()), 0) or {"size": None},  # no longer always null
    ],
)
def test_an_answer_that_differs_from_the_document_fails(wrong: dict[str, Any]) -> None:
    with pytest.raises(AssertionError):
        blockfrost_schemas.check("/txs/{hash}", TX | wrong)


def test_a_member_of_another_set_of_words_fails() -> None:
    history = [{"tx_hash": "00", "action": "minted", "amount": "1"}]
    blockfrost_schemas.check("/assets/{asset}/history", history)
    with pytest.raises(AssertionError):
        blockfrost_schemas.check("/assets/{asset}/history", [history[0] | {"action": "made"}])


def test_a_format_is_checked() -> None:
    blockfrost_schemas.check("/tx/submit", "0a" * 32, method="POST")
    with pytest.raises(AssertionError):
        blockfrost_schemas.check("/tx/submit", "0A" * 32, method="POST")


def test_a_null_is_allowed_only_where_the_chain_lacks_what_it_shows() -> None:
    blockfrost_schemas.check("/txs/{hash}", TX | {"deposit": None}, ["earlier blocks"])
    with pytest.raises(AssertionError):
        blockfrost_schemas.check("/txs/{hash}", TX | {"deposit": None}, ["transactions as CBOR"])
