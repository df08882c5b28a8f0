"""The choice of a server, without servers."""

from datetime import UTC, datetime

from api.answers import ChainAnswer, LastUpdated
from api.sources.chain_servers import ChainServer, ChainServers, _Replica
from shared.network import MAINNET

MAINNET_ID = MAINNET.network_id


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
