"""The token registry as a source of an asset's metadata."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from aiohttp import web

from api.sources import registry
from shared import database
from shared.network import PREVIEW
from tests.api.client import serving
from tests.api.conftest import IssueKey
from tests.api.registries import AS_METADATA, COIN, Served, serving_registry
from tests.chain.written import POLICY, Written, mints, pays, person, tx


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving_registry() as served:
        yield served


async def test_a_look_up_continues_the_trace_of_its_request(
    served: Served, environment: dict[str, str], database_url: str, issue_key: IssueKey
) -> None:
    carried: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        carried.append(request.headers.get("traceparent"))
        return web.json_response({}, status=500)  # which is not cached

    served.handler = answer
    connection = await database.connect(database_url, PREVIEW)
    await Written(connection).append(10, tx("a", pays(person("p"), (COIN.hex(), 1)), mint=mints((COIN.hex(), 1))))
    await connection.close()
    trace = f"00-{'4b' * 16}-{'f0' * 8}-01"
    async with serving(environment | {"TOKEN_REGISTRY_URL": served.url}) as api:
        key = await issue_key()
        for sent in (trace, "malformed"):
            await api.call("GET", f"/v1/assets/{POLICY}.{COIN.hex()}", key, headers={"traceparent": sent})
    assert carried == [trace, None]


async def test_the_registry_is_the_last_source(
    served: Served, environment: dict[str, str], database_url: str, issue_key: IssueKey
) -> None:
    connection = await database.connect(database_url, PREVIEW)
    minted = mints((COIN.hex(), 1))
    await Written(connection).append(10, tx("a", pays(person("p"), (COIN.hex(), 1)), mint=minted))
    path = f"/v1/assets/{POLICY}.{COIN.hex()}"
    async with serving(environment | {"TOKEN_REGISTRY_URL": served.url}) as api:
        key = await issue_key()
        for source in ("auto", "registry"):
            told = (await api.get(f"{path}?metadata_source={source}", key)).body["data"]
            assert told["metadata"] == msgspec.to_builtins(AS_METADATA)
            assert told["metadata_source"] == "registry"
        for source in ("cip25", "cip68"):
            told = (await api.get(f"{path}?metadata_source={source}", key)).body["data"]
            assert (told["metadata"], told["metadata_source"]) == (None, None)
        label = {"labels": {"721": {"json": {POLICY: {"Coin": {"name": "on chain"}}}}}}
        named = tx("b", pays(person("p"), (COIN.hex(), 1)), mint=minted, metadata=label)
        await Written(connection).append(20, named)
        assert (await api.get(path, key)).body["data"]["metadata_source"] == "cip25"
    await connection.close()


async def test_a_failing_registry_is_distinguished_from_one_without_an_entry(
    served: Served,
    environment: dict[str, str],
    database_url: str,
    issue_key: IssueKey,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    warning = 'source_failed;source="registry"'
    names = [bytes((number,)).hex() for number in range(registry.FAILURES_IN_A_ROW + 2)]
    minted = [(name, 1) for name in names]
    connection = await database.connect(database_url, PREVIEW)
    await Written(connection).append(10, tx("a", pays(person("p"), *minted), mint=mints(*minted)))
    await connection.close()
    async with serving(environment | {"TOKEN_REGISTRY_URL": served.url}) as api:
        key = await issue_key()
        path, *others = (f"/v1/assets/{POLICY}.{name}" for name in names)

        async def answer(path: str, tag: str = "") -> tuple[Any, str | None, str | None]:
            reply = await api.call("GET", path, key, headers={"If-None-Match": tag} if tag else {})
            told = reply.body["data"]["metadata"] if reply.status == 200 else reply.status
            tagged = reply.headers.get("ETag")
            assert reply.headers["Cache-Control"] == ("private, no-cache" if tagged else "no-store")
            return told, reply.headers.get("Metadata-Warning"), tagged

        served.handler = served.says({}, status=404)
        told, warned, absent_tag = await answer(path)
        assert (told, warned) == (None, None)
        assert absent_tag is not None
        assert (await answer(path, absent_tag))[0] == 304

        monkeypatch.setattr(registry, "ABSENT_FRESH_S", 0)
        for handler in (served.says({}, status=403), served.says({}, status=503)):
            served.handler = handler
            assert await answer(path, absent_tag) == (None, warning, None), "the old tag does not hide the failure"
            assert await answer(f"{path}?metadata_source=cip25") == (None, None, absent_tag), "nobody was asked"
        before = served.asked.total()
        for other in others[: registry.FAILURES_IN_A_ROW - 1]:
            assert await answer(other) == (None, warning, None)
        assert await answer(others[-1]) == (None, warning, None), "while look-ups pause"
        assert served.asked.total() == before + registry.FAILURES_IN_A_ROW - 1
