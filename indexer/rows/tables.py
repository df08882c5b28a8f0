"""The tables of a chain, each declared once: its rows, and how a rollback finds those of undone blocks.

A batch collects the rows of a table in `Inserts`, under its declaration: `inserts[STAKE_EVENT].append(StakeEvent(…))`.
The rest follows: `forward.copy_all` writes them, `backward.py` deletes them, `beginning.erase` empties the table, and
`verify` compares it with the node's blocks. tests/test_schema.py compares the declarations with schema.sql.

Tables that statements fill are in DERIVED. Statements also change some rows of `stake`, `asset` and `reference_output`.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any, Generic, NamedTuple, TypeVar

from shared.ledger import AddressNo, AssetNo, LabelNo, PolicyNo, PoolNo, ScriptKey, StakeNo, TxId

Row = TypeVar("Row", bound=tuple[Any, ...])


class Found(Enum):
    """How a rollback finds the rows to delete: a condition of `delete_rows` in store/backward.sql."""

    BY_TX_ID = "tx_id >= $1"
    BY_SLOT_NO = "slot_no >= $2"
    AFTER_TIP = "slot_no > $3"
    """If the new tip is an epoch boundary block, a block in its slot is undone, and it is not."""
    BY_EPOCH_NO = "epoch_no > $4"
    BY_NEXT_EPOCH_NO = "epoch_no > $4 + 1"
    """The stake snapshot that counts in the epoch after the tip's was taken at the beginning of the tip's."""
    BY_EARNED_EPOCH_NO = "epoch_no > $4 - 2"
    """The rewards of an epoch are paid two epochs later."""
    BY_CONCERN = None
    """By the code of a concern in `indexer/store/`, if at all: most numbers of byte strings stay."""


class Table(Generic[Row]):
    """A table whose rows are inserted as they are: `row` has its columns, in the order of COPY."""

    def __init__(self, name: str, row: type[Row], found: Found) -> None:
        self.name, self.row, self.found = name, row, found
        self.columns: tuple[str, ...] = row._fields  # type: ignore[attr-defined] # a NamedTuple
        TABLES.append(self)


TABLES: list[Table[Any]] = []


class FromBlocks(Table[Row]):
    """A table whose rows follow from the node's blocks alone, so `verify` compares it with those.

    `key` is how many of the first columns name a row there, None: all.
    """

    def __init__(self, name: str, row: type[Row], found: Found, *, key: int | None = None) -> None:
        super().__init__(name, row, found)
        self.key = key


class Inserts:
    """The rows of a batch to insert, by table."""

    def __init__(self) -> None:
        self._rows: dict[Table[Any], list[Any]] = {}

    def __getitem__(self, table: Table[Row]) -> list[Row]:
        """The rows of a table, to read and to append to."""
        return self._rows.setdefault(table, [])

    def __iter__(self) -> Iterator[tuple[Table[Any], list[Any]]]:
        return iter(self._rows.items())


# Row numbers of byte strings ------------------------------------------------------------------------------------------


class Stake(NamedTuple):
    stake_no: StakeNo
    raw: bytes


class Address(NamedTuple):
    address_no: AddressNo
    stake_no: StakeNo | None
    credential_no: AddressNo | None
    raw: bytes


class Pool(NamedTuple):
    pool_no: PoolNo
    pool_id: bytes


class Policy(NamedTuple):
    policy_no: PolicyNo
    policy_id: bytes


class Asset(NamedTuple):
    asset_no: AssetNo
    policy_no: PolicyNo
    fingerprint: int
    name: bytes


STAKE = Table("stake", Stake, Found.BY_CONCERN)
ADDRESS = Table("address", Address, Found.BY_CONCERN)
POOL = Table("pool", Pool, Found.BY_CONCERN)
POLICY = Table("policy", Policy, Found.BY_CONCERN)
ASSET = Table("asset", Asset, Found.BY_CONCERN)


# Blocks and transactions ----------------------------------------------------------------------------------------------


class Block(NamedTuple):
    slot_no: int
    block_no: int
    tx_count: int
    pool_no: PoolNo
    size: int
    hash: bytes


class EpochBoundaryBlock(NamedTuple):
    slot_no: int
    block_no: int
    hash: bytes


class EraStart(NamedTuple):
    slot_no: int
    era: str


class Tx(NamedTuple):
    tx_id: TxId
    fee: int | None
    size: int | None
    hash: bytes
    outputs: bytes
    inputs: bytes
    mint: bytes | None
    extra: bytes | None
    attached: bytes | None
    referred: bytes | None


class GenesisOutput(NamedTuple):
    tx_hash: bytes
    tx_id: TxId
    address: bytes
    lovelace: int


class ReferenceOutput(NamedTuple):
    asset_no: AssetNo
    tx_id: TxId
    output_index: int
    datum_hash: bytes | None


class ScriptOutput(NamedTuple):
    tx_id: TxId
    output_index: int
    script_hash: bytes


class Datum(NamedTuple):
    hash: bytes
    tx_id: TxId
    body: bytes


class Script(NamedTuple):
    hash: bytes
    tx_id: TxId
    language: int
    body: bytes


BLOCK = FromBlocks("block", Block, Found.BY_SLOT_NO, key=1)
EPOCH_BOUNDARY_BLOCK = FromBlocks("epoch_boundary_block", EpochBoundaryBlock, Found.AFTER_TIP, key=1)
ERA_START = FromBlocks("era_start", EraStart, Found.BY_CONCERN, key=1)
TX = FromBlocks("tx", Tx, Found.BY_TX_ID, key=1)
GENESIS_OUTPUT = FromBlocks("genesis_output", GenesisOutput, Found.BY_CONCERN, key=1)
REFERENCE_OUTPUT = FromBlocks("reference_output", ReferenceOutput, Found.BY_TX_ID, key=3)
SCRIPT_OUTPUT = FromBlocks("script_output", ScriptOutput, Found.BY_TX_ID, key=2)
DATUM = FromBlocks("datum", Datum, Found.BY_TX_ID, key=1)
SCRIPT = FromBlocks("script", Script, Found.BY_TX_ID, key=1)


# Certificates ---------------------------------------------------------------------------------------------------------


class StakeEvent(NamedTuple):
    tx_id: TxId
    stake_no: StakeNo
    pool_no: PoolNo | None
    epoch_no: int
    place: int
    kind: str


class VoteDelegation(NamedTuple):
    tx_id: TxId
    stake_no: StakeNo
    place: int
    kind: str
    representative: bytes | None


class RepresentativeEvent(NamedTuple):
    tx_id: TxId
    place: int
    kind: str
    lovelace: int | None
    representative: bytes
    anchor_url: bytes | None
    anchor_hash: bytes | None


class PoolUpdate(NamedTuple):
    tx_id: TxId
    pool_no: PoolNo
    place: int
    parameters: bytes


class PoolRetirement(NamedTuple):
    tx_id: TxId
    pool_no: PoolNo
    epoch_no: int
    place: int


class InstantaneousReward(NamedTuple):
    tx_id: TxId
    stake_no: StakeNo
    place: int
    pot: str
    lovelace: int


class PoolRewardAccount(NamedTuple):
    tx_id: TxId
    stake_no: StakeNo
    pool_no: PoolNo
    place: int


class AccountCredit(NamedTuple):
    tx_id: TxId
    lovelace: int
    stake_no: StakeNo


STAKE_EVENT = FromBlocks("stake_event", StakeEvent, Found.BY_TX_ID)
VOTE_DELEGATION = FromBlocks("vote_delegation", VoteDelegation, Found.BY_TX_ID)
REPRESENTATIVE_EVENT = FromBlocks("representative_event", RepresentativeEvent, Found.BY_TX_ID)
POOL_UPDATE = FromBlocks("pool_update", PoolUpdate, Found.BY_TX_ID, key=3)
POOL_RETIREMENT = FromBlocks("pool_retirement", PoolRetirement, Found.BY_TX_ID)
INSTANTANEOUS_REWARD = FromBlocks("instantaneous_reward", InstantaneousReward, Found.BY_TX_ID, key=3)
POOL_REWARD_ACCOUNT = FromBlocks("pool_reward_account", PoolRewardAccount, Found.BY_TX_ID)
ACCOUNT_CREDIT = FromBlocks("account_credit", AccountCredit, Found.BY_TX_ID)


# Mints, and what bulk stages. `Rows` has plain tuples for those of addresses: a transaction has several of them -------


class Mint(NamedTuple):
    asset_no: AssetNo
    seq: int
    tx_id: TxId
    quantity: int | None
    large: int | None
    named: bool


class StagedAddressTx(NamedTuple):
    address_no: AddressNo
    tx_id: TxId


class StagedAssetTx(NamedTuple):
    asset_no: AssetNo
    tx_id: TxId
    quantity: int | None
    large: int | None


class StagedWithdrawal(NamedTuple):
    stake_no: StakeNo
    tx_id: TxId
    lovelace: int


class StagedLabelTx(NamedTuple):
    label_no: LabelNo
    tx_id: TxId


class StagedRedeemerTx(NamedTuple):
    script_key: ScriptKey
    tx_id: TxId


class StagedMint(NamedTuple):
    asset_no: AssetNo
    tx_id: TxId
    quantity: int | None
    large: int | None
    named: bool


class StagedSpender(NamedTuple):
    slot_no: int
    entries: bytes


class StagedBalance(NamedTuple):
    stake_no: StakeNo
    lovelace: int


class StagedHolder(NamedTuple):
    asset_no: AssetNo
    address_no: AddressNo
    quantity: int | None
    large: int | None


class StagedSent(NamedTuple):
    address_no: AddressNo
    asset_no: AssetNo
    quantity: int | None
    large: int | None


MINT = Table("mint", Mint, Found.BY_TX_ID)
ADDRESS_TX_STAGED = Table("address_tx_staged", StagedAddressTx, Found.BY_TX_ID)
ASSET_TX_STAGED = Table("asset_tx_staged", StagedAssetTx, Found.BY_TX_ID)
ACCOUNT_WITHDRAWAL_STAGED = Table("account_withdrawal_staged", StagedWithdrawal, Found.BY_TX_ID)
LABEL_TX_STAGED = Table("label_tx_staged", StagedLabelTx, Found.BY_TX_ID)
REDEEMER_TX_STAGED = Table("redeemer_tx_staged", StagedRedeemerTx, Found.BY_TX_ID)
MINT_STAGED = Table("mint_staged", StagedMint, Found.BY_TX_ID)
SPENDER_STAGED = Table("spender_staged", StagedSpender, Found.BY_CONCERN)
BALANCE_STAGED = Table("balance_staged", StagedBalance, Found.BY_CONCERN)
HOLDER_STAGED = Table("holder_staged", StagedHolder, Found.BY_CONCERN)
ADDRESS_SENT_STAGED = Table("address_sent_staged", StagedSent, Found.BY_CONCERN)


# Tables that statements fill ----------------------------------------------------------------------------------------


class Derived(NamedTuple):
    """A table that is written by statements, and the module of these: a concern in `store/`, or a part of `ledger/`."""

    name: str
    module: str
    found: Found = Found.BY_CONCERN


DERIVED = (
    Derived("tip", "store/forward"),
    *(Derived(name, "store/histories") for name in ("address_tx", "asset_tx", "account_tx", "credential_tx")),
    *(Derived(name, "store/histories") for name in ("account_withdrawal", "label_tx", "redeemer_tx")),
    *(Derived(name, "store/outputs") for name in ("utxo", "spender", "utxo_bucket", "utxo_asset")),
    *(Derived(name, "store/outputs") for name in ("account_utxo_bucket", "account_utxo_asset")),
    *(Derived(name, "store/outputs") for name in ("credential_utxo_bucket", "credential_utxo_asset")),
    *(Derived(name, "store/sent") for name in ("address_sent", "account_sent", "credential_sent")),
    Derived("dropped_output", "store/eras"),
    *(Derived(name, "store/holders") for name in ("holder", "policy_holder")),
    *(Derived(name, "store/holders") for name in ("account_holder", "policy_account_holder", "credential_holder")),
    *(Derived(name, "store/holders") for name in ("holder_bucket", "policy_holder_bucket")),
    *(Derived(name, "store/holders") for name in ("account_holder_bucket", "policy_account_holder_bucket")),
    *(Derived(name, "store/supplies") for name in ("asset_bucket", "minted_asset")),
    Derived("epoch", "store/epochs", Found.BY_EPOCH_NO),
    Derived("pool_reaping", "store/epochs", Found.BY_EPOCH_NO),
    Derived("pool_epoch", "store/epochs", Found.BY_NEXT_EPOCH_NO),
    Derived("stake_snapshot", "store/epochs", Found.BY_NEXT_EPOCH_NO),
    Derived("pool_reward", "store/epochs", Found.BY_NEXT_EPOCH_NO),
    *(Derived(name, "store/epochs") for name in ("reward", "reward_due", "live_stake")),
    *(Derived(name, "store/epochs") for name in ("delegator", "delegator_bucket")),
    Derived("protocol_fork", "store/votes", Found.BY_EPOCH_NO),
    Derived("ledger_state", "ledger/reader"),
    *(Derived(name, "ledger/reader", Found.BY_EPOCH_NO) for name in ("reward_round", "reward_epoch")),
    Derived("pool_earning", "ledger/reader", Found.BY_EARNED_EPOCH_NO),
    Derived("node_comparison", "ledger/comparer", Found.BY_EPOCH_NO),
    Derived("epoch_parameters", "ledger/reader", Found.BY_EPOCH_NO),
    Derived("genesis_configuration", "ledger/reader"),
)

FROM_BLOCKS = tuple(table for table in TABLES if isinstance(table, FromBlocks))

ALL: tuple[Table[Any] | Derived, ...] = (*TABLES, *DERIVED)
"""Every table of a chain. `rollback_depth` counts rollbacks of the node, and is not part of the chain."""

NAMES = tuple(table.name for table in ALL)
