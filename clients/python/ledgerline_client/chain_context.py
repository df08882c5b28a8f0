"""A pycardano chain context over a Ledgerline service: all that a TransactionBuilder needs.

pycardano is an optional dependency, `pip install ledgerline-client[pycardano]`; only this module imports it.
"""

import time
from datetime import datetime
from fractions import Fraction
from functools import lru_cache
from typing import Any

from pycardano import (
    Address,
    Asset,
    AssetName,
    ChainContext,
    DatumHash,
    ExecutionUnits,
    GenesisParameters,
    MultiAsset,
    NativeScript,
    Network,
    PlutusScript,
    ProtocolParameters,
    ScriptHash,
    TransactionFailedException,
    TransactionInput,
    TransactionOutput,
    UTxO,
    Value,
    script_hash,
)
from pycardano.serialization import RawCBOR

from ledgerline_client import types
from ledgerline_client.client import Ledgerline
from ledgerline_client.exchange import LedgerlineError

PARAMETERS_KEPT_S = 20.0
"""A build reads the parameters a hundred times; they change at most once an epoch."""
MAX_SCRIPTS = 100
PAGE = 500
MAX_READS = 10
ASK_EVERY_S = 0.5

_REFUSED, _CONFLICT = 400, 409
_WORD_BYTES = 8
_PURPOSES = {"publish": "certificate", "withdraw": "withdrawal", "vote": "voting", "propose": "proposing"}
"""The purposes of redeemers for which pycardano and the service have different names."""


class LedgerlineChainContext(ChainContext):  # type: ignore[misc] # pycardano has no type annotations
    """Reads and submissions of pycardano through a client of the service.

    Submission needs an API key with the scope `submit`. Methods that read raise LedgerlineError, or
    httpx.TransportError without an answer.
    """

    def __init__(self, service: Ledgerline) -> None:
        self._service = service
        self._network: Network | None = None
        self._genesis: GenesisParameters | None = None
        self._parameters: ProtocolParameters | None = None
        self._parameters_read_at = 0.0
        self._may_follow = True
        self._script = lru_cache(MAX_SCRIPTS)(self._read_script)

    @property
    def network(self) -> Network:
        """The network of the API key."""
        if self._network is None:
            name = self._service.get_network()["data"]["network"]
            self._network = Network.MAINNET if name == "mainnet" else Network.TESTNET
        return self._network

    @property
    def epoch(self) -> int:
        """The epoch of the last indexed block."""
        return self._service.get_network()["data"]["epoch"]["epoch_no"]

    @property
    def last_block_slot(self) -> int:
        """The slot of the last indexed block."""
        return self._service.get_network()["data"]["tip"]["slot_no"]

    @property
    def genesis_param(self) -> GenesisParameters:
        """The parameters that never change, with times in seconds."""
        if self._genesis is None:
            told = self._service.get_genesis()["data"]
            self._genesis = GenesisParameters(
                active_slots_coefficient=Fraction(told["shelley"]["activeSlotsCoefficient"]),
                update_quorum=told["update_quorum"],
                max_lovelace_supply=int(told["max_lovelace_supply"]),
                network_magic=told["network_magic"],
                epoch_length=told["epoch_length"],
                system_start=int(datetime.fromisoformat(told["start_time"]).timestamp()),
                slots_per_kes_period=told["slots_per_kes_period"],
                slot_length=told["slot_length_ms"] // 1000,
                max_kes_evolutions=told["max_kes_evolutions"],
                security_param=told["security_parameter"],
            )
        return self._genesis

    @property
    def protocol_param(self) -> ProtocolParameters:
        """The protocol parameters of the current epoch."""
        now = time.monotonic()
        if self._parameters is None or now >= self._parameters_read_at + PARAMETERS_KEPT_S:
            self._parameters = _parameters(self._service.get_epoch_parameters("latest")["data"]["ogmios"])
            self._parameters_read_at = now
        return self._parameters

    def datum(self, datum_hash: DatumHash) -> RawCBOR:
        """The datum of a hash, needed to spend an output with `datum_hash`."""
        return RawCBOR(bytes.fromhex(self._service.get_datum(str(datum_hash))["data"]["cbor"]))

    def submit_tx_cbor(self, cbor: bytes | str) -> str:
        """Submit a signed transaction; returns its hash. Raises TransactionFailedException if it is refused."""
        try:
            return self._service.submit_transaction(cbor=_hex(cbor))["data"]["tx_hash"]
        except LedgerlineError as refusal:
            raise _failure(refusal) from refusal

    def evaluate_tx_cbor(self, cbor: bytes | str) -> dict[str, ExecutionUnits]:
        """The units that each redeemer of a transaction needs, by `purpose:index` as pycardano names it.

        Raises TransactionFailedException if the transaction can't be evaluated.
        """
        try:
            budgets = self._service.evaluate_transaction(cbor=_hex(cbor))["data"]["budgets"]
        except LedgerlineError as refusal:
            raise _failure(refusal) from refusal
        return {
            f"{_PURPOSES.get(budget['purpose'], budget['purpose'])}:{budget['index']}": ExecutionUnits(
                mem=budget["memory"], steps=budget["cpu"]
            )
            for budget in budgets
        }

    def wait_for(self, tx_hash: str, *, confirmations: int = 0, within_s: float = 120.0) -> types.FullTransaction:
        """Return a submitted transaction once it is in a block and `confirmations` later blocks are indexed.

        If it was submitted by a key of this account with the scope `submit`, it is resubmitted once after each fork
        that removed its block. Raises TransactionFailedException immediately if it has expired. After `within_s`,
        raises TransactionFailedException if the node refused the resubmission, otherwise TimeoutError.
        """
        deadline = time.monotonic() + within_s
        fork: str | None = None
        refused: Exception | None = None
        while True:
            followed = self._followed(tx_hash)
            if followed is not None and followed["state"] == "expired":
                raise TransactionFailedException(f"{tx_hash} expired before a block included it")
            if followed is not None and followed["state"] == "rolled_back" and followed["rolled_back_at"] != fork:
                fork, refused = followed["rolled_back_at"], self._resubmit(tx_hash)
            transaction = self._confirmed(tx_hash, confirmations, followed)
            if transaction is not None:
                return transaction
            if time.monotonic() > deadline:
                raise refused or TimeoutError(f"{tx_hash} was not confirmed within {within_s:.0f} s")
            time.sleep(ASK_EVERY_S)

    def _confirmed(
        self, tx_hash: str, confirmations: int, followed: types.SubmittedTransaction | None
    ) -> types.FullTransaction | None:
        """A transaction with at least `confirmations` confirmations; None if it has fewer."""
        if followed is not None:
            # The request may reach a replica that does not have the block yet.
            enough = followed["confirmations"] is not None and followed["confirmations"] >= confirmations
            return self._transaction(tx_hash) if enough else None
        tip_no = self._service.get_network()["data"]["tip"]["block_no"]
        transaction = self._transaction(tx_hash)
        return transaction if transaction is not None and tip_no >= transaction["block_no"] + confirmations else None

    def _followed(self, tx_hash: str) -> types.SubmittedTransaction | None:
        """The state of a submitted transaction; None if this key can't read it."""
        if not self._may_follow:
            return None
        try:
            return self._service.get_submitted_transaction(tx_hash)["data"]
        except LedgerlineError as refusal:
            self._may_follow = refusal.code != "scope_not_covered"
            if refusal.code in ("scope_not_covered", "transaction_not_submitted"):
                return None
            raise

    def _resubmit(self, tx_hash: str) -> Exception | None:
        """Submit a transaction again. Returns the refusal, final unless the next block contains the transaction."""
        try:
            self._service.resubmit_transaction(tx_hash)
        except LedgerlineError as refusal:
            if refusal.status not in (_REFUSED, _CONFLICT):
                raise
            return None if refusal.status == _CONFLICT else _failure(refusal)
        return None

    def _transaction(self, tx_hash: str) -> types.FullTransaction | None:
        """A transaction; None if no indexed block contains it."""
        try:
            return self._service.get_transaction(tx_hash)["data"]
        except LedgerlineError as refusal:
            if refusal.code == "transaction_not_found":
                return None
            raise

    def _utxos(self, address: str) -> list[UTxO]:
        """The unspent outputs of an address, oldest first, in the state after one block.

        An output is left out if pycardano can't represent its reference script: Plutus V4, a native script with
        more than some hundred levels, or one that pycardano would serialise differently.
        """
        read = [self._output(output) for output in self._unspent(address)]
        return [output for output in read if output is not None]

    def _unspent(self, address: str) -> list[types.UnspentOutput]:
        """All pages of the list, read again from the first one if a block arrives meanwhile."""
        for _ in range(MAX_READS):
            outputs: list[types.UnspentOutput] = []
            blocks: set[str] = set()
            more = True
            while more and len(blocks) < 2:
                page = self._service.list_address_utxos(address, limit=PAGE, offset=len(outputs), order="asc")
                blocks.add(page["last_updated"]["block_hash"])
                outputs += page["data"]
                more = page["pagination"]["hasMore"]
            if len(blocks) == 1:
                return outputs
        raise TimeoutError(f"blocks arrive faster than the outputs of {address} can be read")

    def _output(self, told: types.UnspentOutput) -> UTxO | None:
        """An output; None if pycardano can't represent its script."""
        data_hash, inline, reference = told["data_hash"], told["inline_datum"], told["reference_script_hash"]
        script = None if reference is None else self._script(reference)
        if reference is not None and script is None:
            return None
        output = TransactionOutput(
            Address.from_primitive(told["address"]),
            _value(told["value"]),
            datum_hash=DatumHash.from_primitive(data_hash) if data_hash is not None and inline is None else None,
            datum=None if inline is None else RawCBOR(bytes.fromhex(inline)),
            script=script,
        )
        return UTxO(TransactionInput.from_primitive([told["tx_hash"], told["output_index"]]), output)

    def _read_script(self, wanted: str) -> NativeScript | PlutusScript | None:
        """A script by its hash; None if pycardano can't represent it."""
        told = self._service.get_script(wanted)["data"]
        body, (language, _, version) = bytes.fromhex(told["cbor"]), told["language"].partition(":v")
        try:
            native = language == "native"
            script = NativeScript.from_cbor(body) if native else PlutusScript.from_version(int(version), body)
            return script if str(script_hash(script)) == wanted else None
        except Exception:  # noqa: BLE001 - the ledger has accepted the script; only pycardano can't read it
            return None


def _parameters(told: dict[str, Any]) -> ProtocolParameters:
    """Parameters of Babbage and later eras in the names of pycardano, from those of Ogmios 7. Ratios are exact."""
    units, block_units = told["maxExecutionUnitsPerTransaction"], told["maxExecutionUnitsPerBlock"]
    prices, references = told["scriptExecutionPrices"], told.get("minFeeReferenceScripts")
    coefficient = told["minUtxoDepositCoefficient"]
    return ProtocolParameters(
        min_fee_constant=_lovelace(told["minFeeConstant"]),
        min_fee_coefficient=told["minFeeCoefficient"],
        max_block_size=told["maxBlockBodySize"]["bytes"],
        max_tx_size=told["maxTransactionSize"]["bytes"],
        max_block_header_size=told["maxBlockHeaderSize"]["bytes"],
        key_deposit=_lovelace(told["stakeCredentialDeposit"]),
        pool_deposit=_lovelace(told["stakePoolDeposit"]),
        pool_influence=Fraction(told["stakePoolPledgeInfluence"]),
        monetary_expansion=Fraction(told["monetaryExpansion"]),
        treasury_expansion=Fraction(told["treasuryExpansion"]),
        decentralization_param=Fraction(0),  # Babbage removed it and the extra entropy
        extra_entropy="",
        protocol_major_version=told["version"]["major"],
        protocol_minor_version=told["version"]["minor"],
        min_utxo=0,  # since Alonzo the minimum depends on the size of an output
        min_pool_cost=_lovelace(told["minStakePoolCost"]),
        price_mem=Fraction(prices["memory"]),
        price_step=Fraction(prices["cpu"]),
        max_tx_ex_mem=units["memory"],
        max_tx_ex_steps=units["cpu"],
        max_block_ex_mem=block_units["memory"],
        max_block_ex_steps=block_units["cpu"],
        max_val_size=told["maxValueSize"]["bytes"],
        collateral_percent=told["collateralPercentage"],
        max_collateral_inputs=told["maxCollateralInputs"],
        coins_per_utxo_word=coefficient * _WORD_BYTES,
        coins_per_utxo_byte=coefficient,
        cost_models={
            name.replace("plutus:v", "PlutusV"): _by_position(model) for name, model in told["plutusCostModels"].items()
        },
        maximum_reference_scripts_size=told.get("maxReferenceScriptsSizePerTransaction"),
        min_fee_reference_scripts=references and {name: Fraction(str(price)) for name, price in references.items()},
    )


def _by_position(model: list[int]) -> dict[str, int]:
    """A cost model in the ledger's order, as pycardano writes it into the script data hash.

    pycardano sorts the names of Plutus V1 and keeps the order of the others. No node reports the names; equally long
    numbers are in the same order either way.
    """
    return {f"{position:04}": cost for position, cost in enumerate(model)}


def _lovelace(told: dict[str, Any]) -> int:
    lovelace: int = told["ada"]["lovelace"]
    return lovelace


def _value(told: types.Value) -> Value:
    assets = MultiAsset()
    for asset, quantity in told.get("assets", {}).items():
        policy_id, _, name = asset.partition(".")
        of_policy = assets.setdefault(ScriptHash(bytes.fromhex(policy_id)), Asset())
        of_policy[AssetName(bytes.fromhex(name))] = quantity
    return Value(told["lovelace"], assets)


def _hex(cbor: bytes | str) -> str:
    return cbor.hex() if isinstance(cbor, bytes) else cbor


def _failure(refusal: LedgerlineError) -> Exception:
    """The exception that pycardano's callers expect for a refused transaction; other refusals are unchanged."""
    return TransactionFailedException(refusal.message) if refusal.status == _REFUSED else refusal
