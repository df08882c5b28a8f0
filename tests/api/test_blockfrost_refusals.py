"""Refusals below /blockfrost have the status and the words of Blockfrost's own, which programs compare or show.

tests/vectors/blockfrost-refusals.json has them as facts: the cases of Blockfrost's public tests
(https://github.com/blockfrost/blockfrost-tests) that need no data of a public network.
"""

import json
from pathlib import Path

from api.blockfrost.shape import ROOT
from shared import address
from tests.api.chains import Chain, hash_of
from tests.api.client import Client
from tests.api.payments import ALICE, KEY_HASH, NOBODY, ON_MAINNET, OTHER_HASH, pays
from tests.api.test_blockfrost import KEYED, failure, get, path_of

TOLD = json.loads((Path(__file__).parents[1] / "vectors" / "blockfrost-refusals.json").read_text())
HASH = hash_of("nothing").hex()
VALUES = {
    "x": "stonks",
    "z": "z" * 56,
    "address": ALICE,
    "unused": NOBODY,
    "foreign": ON_MAINNET,
    "foreign_stake": address.show_stake(b"\xe1" + KEY_HASH),
    "unused_stake": address.show_stake(b"\xe0" + OTHER_HASH),
    "asset": OTHER_HASH.hex() + "00",
    "policy": OTHER_HASH.hex(),
    "hash": HASH,
    "hash_but_one": HASH[1:],
}
STATUSES = {404: "Not Found", 400: "Bad Request"}


async def test_wrong_and_missing_things_are_refused_in_blockfrosts_words(api: Client, chain: Chain, key: str) -> None:
    await chain.append(10, pays("a", ALICE))
    for message, paths in TOLD["paths"].items():
        status = 404 if message.startswith("The requested") else 400
        for path in paths:
            reply = await get(api, path.format(**VALUES), key)
            assert failure(reply) == (status, STATUSES[status], message), path


async def test_wrong_pages_and_ranges_are_refused_in_blockfrosts_words(api: Client, chain: Chain, key: str) -> None:
    await chain.append(10, pays("a", ALICE))
    tried = set()
    for route in KEYED:
        names = {field.name for field in route.fields}
        for query, message in TOLD["queries"].items():
            if query.partition("=")[0] in names:
                reply = await get(api, f"{path_of(route.path).removeprefix(ROOT)}?{query}", key)
                assert failure(reply) == (400, "Bad Request", message), (route.path, query)
                tried.add(query)
    assert tried == TOLD["queries"].keys()
