"""A devnet for Plutus scripts, a client that builds their transactions, and the smallest scripts of each language."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pycardano
from pycardano import (
    ExecutionUnits,
    PlutusV1Script,
    PlutusV2Script,
    PlutusV3Script,
    Redeemer,
    TransactionBuilder,
    TransactionOutput,
    UTxO,
)

from devnet.dialect import Dialect
from devnet.generator import Generated, Options
from devnet.server import NodeServer
from tests.chain.ogmios import OgmiosClient, client, strange
from tests.wallet import ADA, Wallet

Json = dict[str, Any]
Script = Any  # of PlutusV1, V2 or V3
# `(lam x y z ())` and `(lam x y z (error))` for PlutusV1 and V2, `(lam x ())` and `(lam x (error))` for V3.
SUCCEEDS = "4d01000033222220051200120011"
FAILS = "46010000222601"
SUCCEEDS_V3 = "450101002499"
FAILS_V3 = "450101002601"
GOOD: list[Script] = [
    PlutusV1Script(bytes.fromhex(SUCCEEDS)),
    PlutusV2Script(bytes.fromhex(SUCCEEDS)),
    PlutusV3Script(bytes.fromhex(SUCCEEDS_V3)),
]
BAD: list[Script] = [
    PlutusV1Script(bytes.fromhex(FAILS)),
    PlutusV2Script(bytes.fromhex(FAILS)),
    PlutusV3Script(bytes.fromhex(FAILS_V3)),
]
DATUM = 42


class Devnet(msgspec.Struct):
    """A running devnet with a client, and pycardano's view of it."""

    node: NodeServer
    ogmios: OgmiosClient
    context: Any
    wallet: Wallet = msgspec.field(default_factory=Wallet.of_faucet)
    told: list[Json] = []

    async def ask(self, method: str, tx: Any, **params: Any) -> Any:
        answer = await self.ogmios.ask(method, transaction={"cbor": tx.to_cbor_hex()}, **params)
        part = "error" if isinstance(answer, dict) and "code" in answer else "result"
        self.told.append({"jsonrpc": "2.0", "method": method, part: answer, "id": None})
        return answer

    async def build(self, build: Any) -> Any:
        return await asyncio.to_thread(build)

    async def lock(self, script: Script, **output: Any) -> UTxO:
        """An unspent output of 20 ada at a script's address."""
        address = pycardano.Address(pycardano.plutus_script_hash(script), network=pycardano.Network.TESTNET)
        return await self.pay(TransactionOutput(address, 20 * ADA, **output))

    async def pay(self, output: TransactionOutput) -> UTxO:
        def build() -> Any:
            builder = TransactionBuilder(self.context)
            builder.add_input_address(self.wallet.address)
            builder.add_output(output)
            return builder.build_and_sign([self.wallet.key], self.wallet.address)

        tx = await self.build(build)
        assert "transaction" in await self.ask("submitTransaction", tx)
        self.node.grow()
        return UTxO(pycardano.TransactionInput(tx.id, 0), output)

    def builder(self) -> TransactionBuilder:
        builder = TransactionBuilder(self.context)
        builder.add_input_address(self.wallet.address)
        return builder

    async def spend(self, held: UTxO, units: tuple[int, int] | None = None, **more: Any) -> Any:
        """A signed transaction that spends an output of a script, with these units or those that the node tells."""

        def build() -> Any:
            builder = self.builder()
            redeemer = Redeemer(7, ExecutionUnits(*units)) if units else Redeemer(7)
            builder.add_script_input(held, redeemer=redeemer, **more)
            return builder.build_and_sign([self.wallet.key], self.wallet.address)

        return await self.build(build)

    def in_tip(self) -> dict[str, Json]:
        return {tx["id"]: tx for tx in self.node.blocks[-1].decoded()["transactions"]}


@asynccontextmanager
async def running() -> AsyncIterator[Devnet]:
    """One of the era Conway, whose faucet pays."""
    chain = Generated(Options(seed=3, density=2, eras=(("conway", 0),), faucet=True, blocks_per_epoch=40), 60)
    async with NodeServer(chain, dialect=Dialect((6, 14))) as node, client(node) as ogmios:
        port = int(node.url.rpartition(":")[2])
        # NOTE: pycardano keeps the tip for a second, and the outputs at an address while the tip stays the same. With 0
        # it keeps no outputs: a transaction within that second may have spent one.
        context = await asyncio.to_thread(pycardano.OgmiosChainContext, "127.0.0.1", port, refetch_chain_tip_interval=0)
        devnet = Devnet(node, ogmios, context)
        yield devnet
        assert strange((6, 14), devnet.told) == {}
