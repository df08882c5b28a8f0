"""Each list and object of the API, read completely and compared with the model."""

import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.chain.harness import Caller
from tests.chain.model import Json, Ledger, OutputReference, Transaction, bech32_payload, fingerprint, page
from tests.chain.model_assets import AssetKey
from tests.chain.model_certificates import shown as certificate_of
from tests.chain.model_certificates import with_origin
from tests.chain.model_chain import Chain
from tests.chain.model_owners import ORIGINS, Owners

Show = Callable[[Transaction], Json]


def address_list(ledger: Ledger, kind: str, grouped: bool = False) -> tuple[str, int, Show]:
    """Path, greatest limit and the model's rows of one of the two address transaction lists."""
    if kind == "history":
        return "/v1/tx/history/", 500, ledger.entry
    return "/v1/tx/address/", 100, lambda tx: ledger.detail(tx, grouped)


def check_page(caller: Caller, ledger: Ledger, kind: str, address: str, **query: Any) -> Json:
    """One page of an address list equals the model's, cursor included; gives its pagination."""
    path, _, show = address_list(ledger, kind, query.get("groupByPolicy") == "true")
    limit, offset, order = (
        query.get("limit", 20 if kind == "address" else 100),
        query.get("offset", 0),
        query.get("order", "desc"),
    )
    expected = page(ledger.history(address, order, query.get("fromSlot")), limit, offset)
    body = caller.ok(path + address, **query)
    assert body["data"] == [show(tx) for tx in expected.rows], (address, query)
    assert body["last_updated"] == ledger.last_updated()
    pagination: Json = body["pagination"]
    cursor = pagination.pop("next_cursor", None)
    counted = {"limit": limit, "offset": offset, "total": expected.total, "hasMore": expected.has_more}
    assert pagination == counted, (address, query, pagination)
    if expected.rows and expected.following is not None and expected.rows[-1].slot != expected.following.slot:
        # Any slot after this page's last one, up to that of the next row, gives the same next page.
        last, following = expected.rows[-1].slot, expected.following.slot
        assert cursor is not None, (address, query)
        assert last < cursor <= following if order == "asc" else following <= cursor < last, (address, query, cursor)
    else:
        assert cursor is None, (address, query, cursor)
    return pagination | {"next_cursor": cursor}


def check_transaction(caller: Caller, ledger: Ledger, tx: Transaction) -> Json:
    """A transaction by its hash equals the model's, with its certificates; gives the answer."""
    body = caller.ok(f"/v1/tx/hash/{tx.tx_hash}")
    told = [certificate_of(each, ledger.network) for each in tx.certificates]
    assert body["data"].items() >= (ledger.detail(tx) | {"certificates": told}).items(), tx.tx_hash
    return body


def walk(caller: Caller, path: str, limit: int, order: str, from_slot: int | None = None) -> list[Json]:
    """All rows of an address list, walked as docs/http-api.md says: by cursor while there is one, else by offset."""
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
    """All rows of a list of so many, by offset. Checks the pagination of each page."""
    rows: list[Json] = []
    more = True
    while more:
        body = caller.ok(path, limit=limit, offset=len(rows), **query)
        pagination = {"limit": limit, "offset": len(rows), "hasMore": len(rows) + limit < count}
        assert body["pagination"] == pagination | ({"total": count} if total else {}), (path, query)
        found = body["data"]["delegators"] if isinstance(body["data"], dict) else body["data"]
        assert len(found) == min(limit, count - len(rows)), (path, query)
        rows += found
        more = body["pagination"]["hasMore"]
    return rows


def check_sorted(rows: list[Json], expected: list[Json], figure: str, descending: bool) -> None:
    """The rows are sorted by a figure; the order of ties is not compared."""
    figures = [int(row[figure]) for row in rows]
    assert figures == sorted(figures, reverse=descending)
    assert sorted(rows, key=as_text) == sorted(expected, key=as_text)


def as_text(row: Json) -> str:
    return json.dumps(row, sort_keys=True)


def check_by_figure(caller: Caller, path: str, expected: list[Json], figure: str, total: bool) -> None:
    for order in ("asc", "desc"):
        check_sorted(collected(caller, path, len(expected), total, order=order), expected, figure, order == "desc")


def check_by_slot(caller: Caller, path: str, oldest_first: list[Json], total: bool) -> None:
    assert collected(caller, path, len(oldest_first), total, order="asc") == oldest_first, path
    assert collected(caller, path, len(oldest_first), total, order="desc") == oldest_first[::-1], path


def check_asset(caller: Caller, chain: Chain, asset: AssetKey, holders: list[Json]) -> None:
    """Check info, holders, transactions and mints of one asset."""
    path = f"/v1/assets/{asset[0]}.{asset[1]}"
    told = caller.ok(path)["data"]
    assert caller.ok(f"/v1/assets/{fingerprint(*asset)}")["data"] == told
    metadata, source = chain.assets.metadata(asset)
    told["metadata"] = told["metadata"] and {key: value for key, value in told["metadata"].items() if value is not None}
    assert told == chain.assets.info(asset) | {"metadata": metadata, "metadata_source": source}
    check_by_figure(caller, f"{path}/holders", holders, "quantity", total=False)
    check_by_slot(caller, f"{path}/transactions", chain.assets.movements(asset), total=False)
    check_by_slot(caller, f"{path}/mints", chain.assets.mints(asset), total=True)


def check_policy(caller: Caller, chain: Chain, policy: str, holders: list[Json]) -> None:
    """Check the assets of a policy and its holders."""
    listed = [chain.assets.listed(asset) for asset in chain.assets.of_policy(policy)]
    check_by_figure(caller, f"/v1/assets/policy/{policy}", listed, "total_supply", total=True)
    check_by_figure(caller, f"/v1/assets/policy/{policy}/holders", holders, "quantity", total=False)


def check_pool(caller: Caller, chain: Chain, pool: str) -> None:
    """Check a pool and its delegators, with a node that reports no rewards."""
    told = caller.ok(f"/v1/pools/{pool}")["data"]
    del told["saturation"]
    assert told == chain.pools.info(pool)
    expected = chain.pools.delegators(pool)
    for limit in (7, 500):
        rows = collected(caller, f"/v1/pools/{pool}/delegators/list", len(expected), total=True, limit=limit)
        check_sorted(rows, expected, "amount", descending=True)


def check_blocks(caller: Caller, chain: Chain, places: Sequence[int]) -> None:
    """Check the blocks at these places, by hash and by number, with their transactions, and the latest one."""
    model = chain.blocks
    for place in places:
        block, listed = model.blocks[place], model.listed(place)
        for name in (block["id"], block["height"]):
            assert caller.ok(f"/v1/blocks/{name}")["data"] == model.info(place)
        check_by_slot(caller, f"/v1/blocks/{block['id']}/transactions", listed, total=True)
    latest = caller.ok("/v1/blocks/latest")
    assert latest["data"] == model.info(len(model.blocks) - 1)
    assert latest["last_updated"] == chain.ledger.last_updated()


def check_epochs(caller: Caller, chain: Chain) -> None:
    """Check every epoch."""
    for epoch in chain.blocks.of_epoch:
        assert caller.ok(f"/v1/epochs/{epoch}")["data"] == chain.blocks.epoch(epoch)
    assert caller.ok("/v1/epochs/latest")["data"] == chain.blocks.epoch(max(chain.blocks.of_epoch))


def check_stake(caller: Caller, chain: Chain) -> None:
    """Check the stake of the network: the sums over all pools, with a node that reports no rewards."""
    pools = [chain.pools.info(pool) for pool in chain.pools.parameters]
    told = caller.ok("/v1/network")["data"]
    assert told["tip"]["block_hash"] == (chain.ledger.tip or {})["id"]
    assert told["stake"] == {
        "live": str(sum(int(pool["live_stake"]) for pool in pools)),
        "active": str(sum(int(pool["active_stake"]) for pool in pools)),
    }


def check_address(caller: Caller, owners: Owners, address: str) -> None:
    """Check what an address has, its outputs and its assets."""
    path = f"/v1/addresses/{address}"
    body = caller.ok(path)
    assert body["data"] == owners.address(address)
    assert body["last_updated"] == owners.ledger.last_updated()
    check_owned(caller, owners, path, address)


def check_account(caller: Caller, chain: Chain, owners: Owners, account: str) -> None:
    """Check what an account has, its addresses, outputs, assets, transactions, delegations and withdrawals."""
    path, ledger = f"/v1/accounts/{account}", owners.ledger
    told = caller.ok(path)["data"]
    assert told.pop("rewards") >= 0
    pool, epoch = chain.pools.delegations.get(account, (None, None))
    representative = chain.pools.representatives.get(account)
    raw = bech32_payload(account)
    expected = {
        "stake_address": account,
        "stake_credential": {"id": raw[1:].hex(), "origin": ORIGINS[raw[0] >> 4 & 1]},
        "registered": account in chain.pools.registered,
        "pool_id": pool,
        "active_epoch_no": None if epoch is None else epoch + 2,
        "delegate_representative": None if representative is None else with_origin(representative),
        "withdrawal_count": len(owners.withdrawals(account)),
        **owners.summary(account),
    }
    if told["registered"] is None:  # the recorded blocks begin in the middle
        assert account not in chain.pools.registered
        expected["registered"] = None
    assert told == expected
    check_owned(caller, owners, path, account)
    listed = [row["address"] for row in collected(caller, f"{path}/addresses", len(owners.addresses[account]), False)]
    assert sorted(listed) == sorted(owners.addresses[account])
    check_by_slot(caller, f"{path}/delegations", chain.pools.delegated.get(account, []), total=False)
    check_by_slot(caller, f"{path}/withdrawals", owners.withdrawals(account), total=True)
    transactions = owners.transactions.get(account, [])
    for order in ("asc", "desc"):
        rows = transactions if order == "asc" else transactions[::-1]
        assert walk(caller, f"{path}/transactions", 7, order) == [ledger.entry(tx) for tx in rows]
    assert walk(caller, f"{path}/transactions/detailed", 20, "asc") == [ledger.detail(tx) for tx in transactions]


def check_owned(caller: Caller, owners: Owners, path: str, owner: str) -> None:
    """Check the unspent outputs of an address or account, also those with one of its assets, and its assets."""
    unspent = owners.unspent(owner)
    for limit in (3, 500) if len(unspent) < 60 else (500,):
        for order in ("asc", "desc"):
            rows = unspent if order == "asc" else unspent[::-1]
            assert collected(caller, f"{path}/utxos", len(rows), False, limit=limit, order=order) == rows, (path, order)
    holdings = owners.holdings(owner)
    listed = collected(caller, f"{path}/assets", len(holdings), False, order="asc")
    assert sorted(listed, key=as_text) == sorted(holdings, key=as_text)
    assert collected(caller, f"{path}/assets", len(holdings), False, limit=max(len(holdings) - 1, 1)) == listed[::-1]
    for policy, name in list(owners.held(owner))[:2]:
        rows = owners.unspent(owner, (policy, name))
        found = collected(caller, f"{path}/utxos", len(rows), False, limit=2, order="asc", asset=f"{policy}.{name}")
        assert found == rows, (path, policy, name)


def check_output(caller: Caller, owners: Owners, reference: OutputReference) -> None:
    """Check an output and who spent it."""
    assert caller.ok(f"/v1/utxos/{reference[0]}/{reference[1]}")["data"] == owners.made_output(reference)


def check_account_holders(caller: Caller, chain: Chain, owners: Owners) -> None:
    """Check the holders by account of every asset and policy."""
    by_asset, by_policy = owners.account_holders()
    for policy, name in chain.assets.minted:
        path = f"/v1/assets/{policy}.{name}/holders/accounts"
        check_by_figure(caller, path, by_asset.get((policy, name), []), "quantity", total=False)
    for policy in {policy for policy, _ in chain.assets.minted}:
        path = f"/v1/assets/policy/{policy}/holders/accounts"
        check_by_figure(caller, path, by_policy.get(policy, []), "quantity", total=False)
