"""Each list and object of the API, read completely and compared with the model.

A difference is an AssertionError with the question, the field, its value and the expected value.
"""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from tests.chain.compared import same
from tests.chain.harness import Caller
from tests.chain.model import Json, Ledger, Transaction, fingerprint, page
from tests.chain.model_assets import AssetKey
from tests.chain.model_attachments import Attachments, metadata_of
from tests.chain.model_certificates import shown as certificate_of
from tests.chain.model_chain import Chain

Show = Callable[[Transaction], Json]
RANDOM_PAGES = 3
"""The most pages of a list that are read at random depths, besides all its pages in order."""


def address_list(ledger: Ledger, kind: str, grouped: bool = False) -> tuple[str, int, Show]:
    """Path, greatest limit and the model's rows of one of the two address transaction lists."""
    if kind == "history":
        return "/v1/tx/history/", 500, ledger.entry
    return "/v1/tx/address/", 100, lambda tx: ledger.detail(tx, grouped)


def orders(rows: Sequence[Any]) -> tuple[str, ...]:
    """The orders in which to read a list: both, unless they are the same."""
    return ("asc", "desc") if len(rows) > 1 else ("desc",)


def asked(path: str, query: Json) -> str:
    """A question as errors name it."""
    return path if not query else f"{path}?{'&'.join(f'{name}={value}' for name, value in query.items())}"


def check_page(caller: Caller, ledger: Ledger, kind: str, address: str, **query: Any) -> Json:
    """One page of an address list equals the model's, cursor included; returns its pagination."""
    path, _, show = address_list(ledger, kind, query.get("groupByPolicy") == "true")
    question = asked(path + address, query)
    limit, offset, order = (
        query.get("limit", 20 if kind == "address" else 100),
        query.get("offset", 0),
        query.get("order", "desc"),
    )
    expected = page(ledger.history(address, order, query.get("fromSlot")), limit, offset)
    body = caller.ok(path + address, **query)
    same(question, body["data"], [show(tx) for tx in expected.rows])
    same(question, body["last_updated"], ledger.last_updated())
    pagination: Json = body["pagination"]
    cursor = pagination.pop("next_cursor", None)
    counted = {"limit": limit, "offset": offset, "total": expected.total, "hasMore": expected.has_more}
    same(question, pagination, counted)
    if expected.rows and expected.following is not None and expected.rows[-1].slot != expected.following.slot:
        # Any slot after this page's last one, up to that of the next row, gives the same next page.
        last, following = expected.rows[-1].slot, expected.following.slot
        assert cursor is not None, question
        assert last < cursor <= following if order == "asc" else following <= cursor < last, (question, cursor)
    else:
        same(question, cursor, None)
    return pagination | {"next_cursor": cursor}


def check_histories(caller: Caller, ledger: Ledger, address: str, random: Random) -> None:
    """Check both transaction lists of an address: from end to end by cursor, and pages at random depths and slots."""
    transactions = ledger.of_address[address]
    for kind in ("history", "address"):
        path, most, show = address_list(ledger, kind)
        for order in orders(transactions):
            check_page(caller, ledger, kind, address, order=order, limit=most)
            if len(transactions) > most:
                rows = walk(caller, path + address, random.randint(most // 2, most), order)
                same(asked(path + address, {"order": order}), rows, [show(tx) for tx in ledger.history(address, order)])
        for _ in range(min(len(transactions) // 2, RANDOM_PAGES)):
            query: Json = {
                "order": random.choice(("asc", "desc")),
                "limit": random.randint(1, min(most, len(transactions) + 1)),
                "offset": random.choice((0, random.randrange(len(transactions) + 2))),
            }
            if random.random() < 0.5:
                query["fromSlot"] = max(0, random.choice(transactions).slot + random.choice((-1, 0, 1)))
            if kind == "address" and random.random() < 0.5:
                query["groupByPolicy"] = "true"
            check_page(caller, ledger, kind, address, **query)


def check_transaction(caller: Caller, ledger: Ledger, tx: Transaction, metadata_cbor: bool = True) -> Json:
    """A transaction by its hash equals the model's; returns the answer. A node may omit the CBOR of metadata."""
    path = f"/v1/tx/hash/{tx.tx_hash}"
    body = caller.ok(path)
    same(path, body["data"], full(ledger, tx, body["data"], metadata_cbor))
    return body


def full(ledger: Ledger, tx: Transaction, told: Json, metadata_cbor: bool = True) -> Json:
    """A transaction in full. Labels without CBOR in the recorded blocks are not compared."""
    metadata = {label: known or told["metadata"].get(label) for label, known in metadata_of(tx).items()}
    if not metadata_cbor:
        metadata = {label: {"json": known["json"]} for label, known in metadata.items()}
    certificates = [certificate_of(each, ledger.network) for each in tx.certificates]
    return ledger.full(tx) | {"metadata": metadata, "certificates": certificates}


def walk(caller: Caller, path: str, limit: int, order: str, from_slot: int | None = None) -> list[Json]:
    """All rows of an address list, walked as in docs/http-api.md: by cursor while there is one, else by offset."""
    rows: list[Json] = []
    query: Json = {"limit": limit, "order": order} | ({} if from_slot is None else {"fromSlot": from_slot})
    offset = 0
    while True:
        body = caller.ok(path, **query, offset=offset)
        rows += body["data"]
        pagination = body["pagination"]
        if not pagination["hasMore"]:
            return rows
        if "next_cursor" in pagination:
            query["fromSlot"], offset = pagination["next_cursor"], 0
        else:
            offset += limit


def collected(caller: Caller, path: str, count: int, total: bool, limit: int = 500, **query: Any) -> list[Json]:
    """All rows of a list of `count`, by offset. Checks the pagination of each page."""
    rows: list[Json] = []
    more = True
    while more:
        offset = len(rows)
        body = caller.ok(path, limit=limit, offset=offset, **query)
        question = asked(path, query | {"limit": limit, "offset": offset})
        body["pagination"].pop("next_cursor", None)
        pagination = {"limit": limit, "offset": offset, "hasMore": offset + limit < count}
        same(question, body["pagination"], pagination | ({"total": count} if total else {}))
        found = body["data"]["delegators"] if isinstance(body["data"], dict) else body["data"]
        assert len(found) == min(limit, count - offset), f"{question}: {len(found)} entries on a page, {count} in all"
        rows += found
        more = body["pagination"]["hasMore"]
    return rows


def along_cursors(caller: Caller, path: str, limit: int, **query: Any) -> list[Json]:
    """All rows of a list of an owner, by its cursors."""
    rows: list[Json] = []
    cursor: dict[str, str] = {}
    while True:
        body = caller.ok(path, limit=limit, **query, **cursor)
        rows += body["data"]
        assert ("next_cursor" in body["pagination"]) == body["pagination"]["hasMore"], asked(path, query | cursor)
        if not body["pagination"]["hasMore"]:
            return rows
        cursor["cursor"] = body["pagination"]["next_cursor"]


def check_depths(caller: Caller, path: str, rows: list[Json], random: Random, **query: Any) -> None:
    """Check pages of a list at random depths, also beyond its end: more of them if it is long."""
    for _ in range(min(len(rows) // 2, RANDOM_PAGES)):
        limit, offset = random.randint(1, min(500, len(rows) + 1)), random.randrange(len(rows) + 2)
        body = caller.ok(path, limit=limit, offset=offset, **query)
        same(asked(path, query | {"limit": limit, "offset": offset}), body["data"], rows[offset : offset + limit])


def check_sorted(question: str, rows: list[Json], expected: list[Json], figure: str, descending: bool) -> None:
    """The rows are sorted by a figure; the order of ties is not compared."""
    figures = [int(row[figure]) for row in rows]
    same(f"{question}, each {figure}", figures, sorted(figures, reverse=descending))
    same(f"{question}, sorted as text", sorted(rows, key=as_text), sorted(expected, key=as_text))


def as_text(row: Json) -> str:
    return json.dumps(row, sort_keys=True)


def check_by_figure(caller: Caller, path: str, expected: list[Json], figure: str, total: bool) -> None:
    """Check a list that is sorted by a figure; small pages have the order of large ones."""
    for order in orders(expected):
        rows = collected(caller, path, len(expected), total, order=order)
        check_sorted(asked(path, {"order": order}), rows, expected, figure, order == "desc")
        check_depths(caller, path, rows, Random(path), order=order)


def check_by_slot(caller: Caller, path: str, oldest_first: list[Json], total: bool) -> None:
    for order in orders(oldest_first):
        expected = oldest_first if order == "asc" else oldest_first[::-1]
        rows = collected(caller, path, len(oldest_first), total, order=order)
        same(asked(path, {"order": order}), rows, expected)


def check_csv(caller: Caller, path: str, columns: tuple[str, ...], expected: list[Json], slot: int) -> None:
    """Check a download: its name has the slot, its lines are the list's."""
    headers, text = caller.text(path)
    same(path, headers.get("Content-Disposition"), f'attachment; filename="holders-{slot}.csv"')
    head, *lines = text.split("\r\n")[:-1]
    same(path, head, ",".join(columns))
    rows = [dict(zip(columns, (part or None for part in line.split(",")), strict=True)) for line in lines]
    check_sorted(path, rows, expected, "quantity", descending=True)


def asset_info(chain: Chain, asset: AssetKey) -> Json:
    """GET /v1/assets/:asset, without fields of the metadata that are null."""
    metadata, source = chain.assets.metadata(asset)
    return chain.assets.info(asset) | {"metadata": metadata, "metadata_source": source}


def without_nulls(told: Json) -> Json:
    """An asset as answered, without fields of its metadata that are null."""
    metadata = told["metadata"] and {key: value for key, value in told["metadata"].items() if value is not None}
    return told | {"metadata": metadata}


def check_asset(caller: Caller, chain: Chain, asset: AssetKey, holders: list[Json]) -> None:
    """Check info, holders, transactions and mints of one asset."""
    path, expected = f"/v1/assets/{asset[0]}.{asset[1]}", asset_info(chain, asset)
    for name in (path, f"/v1/assets/{fingerprint(*asset)}"):
        same(name, without_nulls(caller.ok(name)["data"]), expected)
    check_by_figure(caller, f"{path}/holders", holders, "quantity", total=False)
    columns = ("address", "stake_address", "quantity")
    check_csv(caller, f"{path}/holders.csv", columns, holders, chain.ledger.slot)
    check_by_slot(caller, f"{path}/transactions", chain.assets.movements(asset), total=False)
    check_by_slot(caller, f"{path}/mints", chain.assets.mints(asset), total=True)


def check_policy(caller: Caller, chain: Chain, policy: str, holders: list[Json]) -> None:
    """Check the assets of a policy and its holders."""
    path = f"/v1/assets/policy/{policy}"
    listed = [chain.assets.listed(asset) for asset in chain.assets.of_policy(policy)]
    check_by_figure(caller, path, listed, "total_supply", total=True)
    check_by_figure(caller, f"{path}/holders", holders, "quantity", total=False)
    columns = ("address", "stake_address", "quantity")
    check_csv(caller, f"{path}/holders.csv", columns, holders, chain.ledger.slot)


def check_pool(caller: Caller, chain: Chain, pool: str) -> None:
    """Check a pool and its delegators, with a node that reports no rewards."""
    path = f"/v1/pools/{pool}"
    told = caller.ok(path)["data"]
    del told["saturation"]
    same(path, told, chain.pools.info(pool))
    expected = chain.pools.delegators(pool)
    for limit in (7, 500):
        rows = collected(caller, f"{path}/delegators/list", len(expected), total=True, limit=limit)
        check_sorted(f"{path}/delegators/list?limit={limit}", rows, expected, "amount", descending=True)


def check_block(caller: Caller, chain: Chain, place: int, names: Sequence[str] = ("id", "height")) -> None:
    """Check the block at a place, by its hash, by its number, or by both."""
    for name in names:
        path = f"/v1/blocks/{chain.blocks.blocks[place][name]}"
        same(path, caller.ok(path)["data"], chain.blocks.info(place))


def check_block_transactions(caller: Caller, chain: Chain, place: int) -> None:
    """Check the transactions of the block at a place."""
    path = f"/v1/blocks/{chain.blocks.blocks[place]['id']}/transactions"
    check_by_slot(caller, path, chain.blocks.listed(place), total=True)


def check_blocks(caller: Caller, chain: Chain, places: Sequence[int]) -> None:
    """Check the blocks at these places, and the latest one."""
    for place in places:
        check_block(caller, chain, place)
        check_block_transactions(caller, chain, place)
    latest = caller.ok("/v1/blocks/latest")
    same("/v1/blocks/latest", latest["data"], chain.blocks.info(len(chain.blocks.blocks) - 1))
    same("/v1/blocks/latest", latest["last_updated"], chain.ledger.last_updated())


def check_epochs(caller: Caller, chain: Chain) -> None:
    """Check every epoch."""
    latest = max(chain.blocks.of_epoch)
    for name, epoch in [*((each, each) for each in chain.blocks.of_epoch), ("latest", latest)]:
        same(f"/v1/epochs/{name}", caller.ok(f"/v1/epochs/{name}")["data"], chain.blocks.epoch(epoch))


def stake_of(chain: Chain) -> Json:
    """The stake of the network with a node that reports no rewards, also of pools that precede the first block."""
    active = chain.pools.snapshots.get(chain.pools.epoch - 1, {})
    return {"live": str(sum(chain.pools.live_stakes().values())), "active": str(sum(active.values()))}


def check_stake(caller: Caller, chain: Chain) -> None:
    """Check the stake of the network."""
    told = caller.ok("/v1/network")["data"]
    same("/v1/network", told["tip"]["block_hash"], (chain.ledger.tip or {})["id"])
    same("/v1/network", told["stake"], stake_of(chain))


def check_script(caller: Caller, attachments: Attachments, digest: str) -> None:
    """Check a script by its hash."""
    same(f"/v1/scripts/{digest}", caller.ok(f"/v1/scripts/{digest}")["data"], attachments.script(digest))


def check_datum(caller: Caller, attachments: Attachments, digest: str) -> None:
    """Check a datum by its hash."""
    same(f"/v1/datums/{digest}", caller.ok(f"/v1/datums/{digest}")["data"], attachments.datum(digest))
