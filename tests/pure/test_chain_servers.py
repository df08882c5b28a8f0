"""The choice of a server, without servers."""

import asyncio
from datetime import UTC, datetime
from typing import Any, cast

import asyncpg
import pytest

from api.answers import ChainAnswer, LastUpdated
from api.sources import chain_servers
from api.sources.chain_servers import ChainServer, ChainServers, _Replica
from shared.network import MAINNET

MAINNET_ID = MAINNET.network_id


class Pool:
    """A pool that counts what is taken, and has those that were returned."""

    def __init__(self) -> None:
        self.taken, self.returned, self.closed = 0, list[Any](), False

    async def acquire(self) -> Any:
        self.taken += 1
        return self

    async def release(self, db: Any) -> None:
        self.returned.append(db)

    async def expire_connections(self) -> None:
        pass

    def is_closed(self) -> bool:
        return self.closed


async def test_a_connection_is_returned_to_its_pool_once_it_fails_or_is_not_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(chain_servers, "_SPARE_FOR_S", 0.0)
    pool = Pool()
    server = ChainServer("postgresql://primary", {MAINNET_ID: cast(asyncpg.Pool, pool)})

    async def use(*, fails: bool = False) -> tuple[int, int]:
        async with server.connection(MAINNET, "key"):
            if fails:
                raise KeyError
        return pool.taken, len(pool.returned)

    assert [await use(), await use()] == [(1, 0), (1, 0)]
    with pytest.raises(KeyError):
        await use(fails=True)
    assert await use() == (2, 1)
    pool.closed = True
    assert await use() == (3, 2), "a lost one is replaced"
    pool.closed = False
    await server.drop_connections()
    await asyncio.sleep(0.01)
    assert await use() == (4, 3)
    while len(pool.returned) < pool.taken:
        await asyncio.sleep(0)


async def test_a_tip_does_not_go_back_after_a_look_in_progress() -> None:
    """An answer of the primary shows a block that a look at the primary, begun before, has not seen."""
    primary, replica = ChainServer("postgresql://primary", {}), _Replica("postgresql://replica", {}, 1)
    servers = ChainServers(primary, [replica], lag_s=10)
    at = {primary: 100, replica: 100}

    async def tip_of(source: ChainServer) -> ChainAnswer[None]:
        return ChainAnswer(data=None, last_updated=LastUpdated(at[source], "", datetime.now(UTC)))

    async def shown(*, on_primary: bool = False) -> int:
        return (await servers.read(MAINNET, tip_of, on_primary=on_primary)).last_updated.slot_no

    for source in (primary, replica):
        servers._look(source, {}, {MAINNET_ID: 100})
    assert await shown() == 100
    before = dict(primary.tips)
    at[primary] = 120
    assert await shown(on_primary=True) == 120
    servers._look(primary, before, {MAINNET_ID: 100})
    assert await shown() == 120
    assert primary.tips == {MAINNET_ID: 120}, "so that the next look knows a rollback"
    at[primary] = 110
    servers._look(primary, dict(primary.tips), {MAINNET_ID: 110})
    assert await shown() == 110, "a rollback"
