"""The token registry: its entries are shown, and its faults only make the metadata null."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest
from aiohttp import web

from api.sources import registry
from api.sources.registry import InvalidEntry, Registry, Result
from shared.metadata import Metadata
from tests.api.registries import AS_METADATA, ASSET, LOGO, SUBJECT, WHOLE, Served, entry, serving_registry
from tests.chain.written import POLICY
from tests.patience import OwnTime
from tests.ports import free_port


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    async with serving_registry() as served:
        yield served


class Clock:
    """Seconds that pass when a test says so."""

    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def asking(served: Served, clock: Clock) -> AsyncIterator[Registry]:
    async with registry.opened(served.url, clock) as asking:
        yield asking


async def metadata(asking: Registry, asset: bytes) -> Metadata | None:
    """The metadata of an asset, whatever the state of the registry."""
    return (await asking.look_up(asset)).metadata


async def test_an_entry_is_returned(asking: Registry, served: Served) -> None:
    assert await metadata(asking, ASSET) == AS_METADATA
    assert served.asked == {f"/metadata/{SUBJECT}": 1}


async def test_an_entry_is_cached(asking: Registry, served: Served) -> None:
    await metadata(asking, ASSET)
    served.handler = served.says(entry(name="Changed"))
    assert await metadata(asking, ASSET) == AS_METADATA
    assert served.asked.total() == 1


async def test_an_old_entry_is_looked_up_again(asking: Registry, served: Served, clock: Clock) -> None:
    await metadata(asking, ASSET)
    served.handler = served.says(entry(name="Changed"))
    clock.now_s += registry.FRESH_S - 1
    assert await metadata(asking, ASSET) == AS_METADATA
    clock.now_s += 1
    assert await metadata(asking, ASSET) == Metadata(name="Changed", decimals=0)


@pytest.mark.parametrize("status", registry.NO_ENTRY_STATUSES)
async def test_an_unknown_asset_is_cached_as_absent(asking: Registry, served: Served, status: int) -> None:
    async def without_a_body(_: web.Request) -> web.Response:
        return web.Response(status=status)

    served.handler = without_a_body
    assert await asking.look_up(ASSET) == Result()
    assert await asking.look_up(ASSET) == Result()
    assert served.asked.total() == 1


async def test_without_a_registry_metadata_is_null() -> None:
    async with registry.opened(None) as nobody:
        assert await metadata(nobody, ASSET) is None


async def test_a_registry_that_is_down_costs_almost_no_time() -> None:
    async with registry.opened(f"http://127.0.0.1:{free_port()}/{{subject}}") as asking:
        took = OwnTime()
        assert [await metadata(asking, ASSET) for _ in range(20)] == [None] * 20
        assert took.seconds < 10


async def test_a_slow_registry_delays_no_request(
    asking: Registry, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "LOOK_UP_S", 0.2)

    over = asyncio.Event()

    async def slow(_: web.Request) -> web.Response:
        await over.wait()
        return web.Response()

    served.handler = slow
    took = OwnTime()
    assert [await metadata(asking, ASSET) for _ in range(20)] == [None] * 20
    assert took.seconds < 20 * 0.2 + 6, "the others do not even ask"
    assert served.asked.total() == registry.FAILURES_IN_A_ROW
    over.set()


async def test_a_registry_that_sends_slowly_delays_no_request(
    asking: Registry, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "LOOK_UP_S", 0.3)

    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(1_000):
            await response.write(b" ")
            await asyncio.sleep(0.05)
        return response

    served.handler = drip
    took = OwnTime()
    assert await metadata(asking, ASSET) is None
    assert took.seconds < 20, "it drips for 50 s"


async def test_after_a_pause_the_registry_is_queried_again(asking: Registry, served: Served, clock: Clock) -> None:
    served.handler = served.says({}, status=500)
    for _ in range(10):
        assert await metadata(asking, ASSET) is None
    assert served.asked.total() == registry.FAILURES_IN_A_ROW
    served.handler = served.says(WHOLE)
    clock.now_s += registry.PAUSE_S - 1
    assert await metadata(asking, ASSET) is None
    clock.now_s += 1
    assert await metadata(asking, ASSET) == AS_METADATA


async def test_an_invalid_entry_of_one_asset_affects_no_other(asking: Registry, served: Served) -> None:
    served.handler = served.says({"subject": "another"})
    for number in range(registry.FAILURES_IN_A_ROW + 2):
        for _ in range(2):
            assert await metadata(asking, ASSET + bytes((number,))) is None
    assert served.asked.total() == registry.FAILURES_IN_A_ROW + 2
    served.handler = served.says(WHOLE)
    assert await metadata(asking, ASSET) == AS_METADATA


async def test_an_old_entry_is_served_while_look_ups_fail(asking: Registry, served: Served, clock: Clock) -> None:
    await metadata(asking, ASSET)
    clock.now_s += registry.USABLE_S - 1
    served.handler = served.says({}, status=503)
    assert [await metadata(asking, ASSET) for _ in range(6)] == [AS_METADATA] * 6
    clock.now_s += 1
    assert await metadata(asking, ASSET) is None


async def test_many_callers_cause_one_look_up(asking: Registry, served: Served) -> None:
    asked, over = asyncio.Event(), asyncio.Event()

    async def later(_: web.Request) -> web.Response:
        asked.set()
        await over.wait()
        return web.json_response(WHOLE)

    served.handler = later
    leaving = asyncio.create_task(metadata(asking, ASSET))
    await asked.wait()
    waiting = [asyncio.create_task(metadata(asking, ASSET)) for _ in range(50)]
    await asyncio.sleep(0)
    leaving.cancel()
    over.set()
    assert await asyncio.gather(*waiting) == [AS_METADATA] * 50
    assert served.asked.total() == 1


async def test_concurrent_look_ups_are_bounded(asking: Registry, served: Served) -> None:
    over = asyncio.Event()

    async def later(_: web.Request) -> web.Response:
        await over.wait()
        return web.Response(status=404)

    served.handler = later
    assets = [bytes.fromhex(POLICY) + bytes((number,)) for number in range(60)]
    calls = [asyncio.create_task(metadata(asking, asset)) for asset in assets]
    await asyncio.wait(calls[registry.MAX_LOOK_UPS :])  # they are not looked up, so they wait for nobody
    over.set()
    assert await asyncio.gather(*calls) == [None] * 60
    assert served.asked.total() == registry.MAX_LOOK_UPS


async def test_memory_is_bounded(asking: Registry, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    async def large(request: web.Request) -> web.Response:
        return web.json_response(entry(request.path.rpartition("/")[2], name="Coin", logo="A" * 40_000))

    served.handler = large
    monkeypatch.setattr(registry, "MAX_CACHED_BYTES", 100_000)
    first, *others = [bytes.fromhex(POLICY) + bytes((number,)) for number in range(4)]
    for asset in (first, *others):
        assert await metadata(asking, asset) is not None
    assert served.asked.total() == 4
    await metadata(asking, others[-1])
    assert served.asked.total() == 4, "the latest are kept"
    await metadata(asking, first)
    assert served.asked.total() == 5, "the oldest are not"


async def test_a_redirect_is_not_followed(asking: Registry, served: Served) -> None:
    async def away(request: web.Request) -> web.Response:
        if request.path == "/elsewhere":
            return web.json_response(WHOLE)
        return web.Response(status=302, headers={"Location": "/elsewhere"})

    served.handler = away
    assert await metadata(asking, ASSET) is None
    assert served.asked["/elsewhere"] == 0


async def test_an_endless_answer_is_cut_off(asking: Registry, served: Served) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"[" * 65_536)
            sent += 65_536

    served.handler = endless
    assert await metadata(asking, ASSET) is None
    assert sent < 100 * registry.MAX_ANSWER_BYTES


async def test_a_compressed_answer_is_not_decompressed(asking: Registry, served: Served) -> None:
    async def bomb(_: web.Request) -> web.Response:
        response = web.Response(body=b" " * 3_000_000 + msgspec.json.encode(WHOLE))
        response.enable_compression(web.ContentCoding.gzip)
        return response

    served.handler = bomb
    assert await metadata(asking, ASSET) is None


@pytest.mark.parametrize(
    "lie",
    [
        b"",
        b"<html>",
        b"null",
        b"[]",
        b'"text"',
        b"[" * 100_000,
        b"\xff",
        msgspec.json.encode(entry("00" * 28, name="Another")),
        msgspec.json.encode({"name": {"value": "no subject"}}),
        msgspec.json.encode({**WHOLE, "subject": 7}),
        b'{"subject":"%s","name":{"value":"\\ud800"}}' % SUBJECT.encode(),
    ],
)
def test_an_answer_that_is_not_an_entry_is_refused(lie: bytes) -> None:
    with pytest.raises(InvalidEntry):
        registry.read(lie, SUBJECT)


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"name": "Coin", "ticker": 7, "description": ["a"], "decimals": "6"}, Metadata(name="Coin", decimals=0)),
        ({"name": "Coin", "decimals": True}, Metadata(name="Coin", decimals=0)),
        ({"name": "Coin", "decimals": -1}, Metadata(name="Coin", decimals=0)),
        ({"name": "Coin", "decimals": 10**30}, Metadata(name="Coin", decimals=0)),
        ({"name": "Coin", "decimals": 2.5}, Metadata(name="Coin", decimals=0)),
        ({"name": "Coin", "url": "javascript:alert(1)"}, Metadata(name="Coin", decimals=0)),
        ({"name": "Coin", "logo": "<svg>"}, Metadata(name="Coin", decimals=0)),
        ({"name": "Coin", "image": "ipfs://Qm"}, Metadata(name="Coin", decimals=0, image="ipfs://Qm")),
        ({"logo": LOGO, "image": "https://x/y"}, Metadata(decimals=0, image="https://x/y", logo=LOGO)),
        ({"name": "Coin", "image": "http://x/y"}, Metadata(name="Coin", decimals=0)),
        ({"name": "Coin", "image": ["ipfs://Qm"]}, Metadata(name="Coin", decimals=0)),
        ({"name": "Coin", "logo": ""}, Metadata(name="Coin", decimals=0)),
        ({"name": "x" * 5_001}, None),
        ({"name": None}, None),
        ({}, None),
    ],
)
def test_fields_of_the_wrong_type_are_omitted(said: dict[str, Any], told: Metadata | None) -> None:
    assert registry.read(msgspec.json.encode(entry(**said)), SUBJECT) == told


def test_properties_without_a_value_are_omitted() -> None:
    assert registry.read(msgspec.json.encode({"subject": SUBJECT.upper(), "name": "Coin"}), SUBJECT) is None


async def test_an_unusable_answer_stays_a_warning_while_it_is_cached(asking: Registry, served: Served) -> None:
    served.handler = served.says({"subject": "another"})
    assert [(await asking.look_up(ASSET)).failed for _ in range(2)] == [True, True]
    assert served.asked.total() == 1


async def test_an_older_entry_comes_with_a_warning(asking: Registry, served: Served, clock: Clock) -> None:
    assert await asking.look_up(ASSET) == registry.Result(AS_METADATA)
    clock.now_s += registry.FRESH_S
    served.handler = served.says({}, status=500)
    assert await asking.look_up(ASSET) == registry.Result(AS_METADATA, failed=True)
    served.handler = served.says(WHOLE)
    assert await asking.look_up(ASSET) == registry.Result(AS_METADATA)


async def test_an_older_entry_outlasts_an_invalid_one_without_a_look_up_each_time(
    asking: Registry, served: Served, clock: Clock
) -> None:
    await asking.look_up(ASSET)
    clock.now_s += registry.FRESH_S
    served.handler = served.says({"subject": "another"})
    assert [await asking.look_up(ASSET) for _ in range(3)] == [registry.Result(AS_METADATA, failed=True)] * 3
    assert served.asked.total() == 2
    clock.now_s = registry.USABLE_S
    assert await asking.look_up(ASSET) == registry.Result(failed=True), "an older one is not usable for ever"
