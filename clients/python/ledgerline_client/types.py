"""The objects of answers.

Made by `python -m clients.generate` from the table of routes; do not edit.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class TransactionPage(TypedDict):
    """A page of a list from a chain, with the last indexed block."""

    success: Literal[True]
    data: list[Transaction]
    pagination: CursorPaging
    last_updated: LastUpdated


class Transaction(TypedDict):
    """A transaction with its inputs and outputs.

    If its scripts failed, these are its collateral inputs and its collateral return. `fee` is null if it
    depends on an input that precedes the first indexed block, `size` if the node sends no CBOR.
    """

    tx_hash: str
    block_hash: str
    slot_no: int
    block_no: int
    block_time: str
    fee: int | None
    size: int | None
    inputs: list[Input]
    outputs: list[Output]


class Input(TypedDict):
    """A spent output. Address and value are null if the output precedes the first indexed block."""

    tx_hash: str
    output_index: int
    address: str | None
    value: Value | None


class Value(TypedDict):
    """Lovelace and native assets.

    `assets` maps `<policy_id>.<asset_name>` to quantities. With `groupByPolicy`, it maps policy ids to maps
    from asset names to quantities. It is absent if there are no assets.
    """

    lovelace: int
    assets: NotRequired[dict[str, int | dict[str, int]]]


class Output(TypedDict):
    """An output of a transaction."""

    output_index: int
    address: str
    value: Value


class CursorPaging(TypedDict):
    """The position of a page in the transactions of an address or an account.

    `next_cursor` is the `fromSlot` of the next page, with `offset` 0. It is absent on the last page, and on a
    page that ends inside a slot; in the latter case, continue with `offset` + `limit`.
    """

    limit: int
    offset: int
    total: int
    hasMore: bool
    next_cursor: NotRequired[int]


class LastUpdated(TypedDict):
    """The last indexed block, read in the same snapshot as the data."""

    slot_no: int
    block_hash: str
    block_time: str


class HistoryEntryPage(TypedDict):
    """A page of a list from a chain, with the last indexed block."""

    success: Literal[True]
    data: list[HistoryEntry]
    pagination: CursorPaging
    last_updated: LastUpdated


class HistoryEntry(TypedDict):
    """The position of a transaction on the chain."""

    tx_hash: str
    block_hash: str
    slot_no: int
    block_no: int
    block_time: str


class FullTransactionAnswer(TypedDict):
    """Data of a chain, with its last indexed block."""

    success: Literal[True]
    data: FullTransaction
    last_updated: LastUpdated


class FullTransaction(TypedDict):
    """A transaction in full.

    `mint` has negative quantities for burned assets; `metadata` is keyed by label; `certificates` are in
    their order.
    """

    tx_hash: str
    block_hash: str
    slot_no: int
    block_no: int
    block_time: str
    fee: int | None
    size: int | None
    inputs: list[Input]
    outputs: list[Output]
    valid: bool
    metadata: dict[str, LabelMetadata]
    mint: dict[str, int | dict[str, int]]
    withdrawals: list[Withdrawal]
    certificates: list[Certificate]
    invalid_before: int | None
    invalid_hereafter: int | None


class LabelMetadata(TypedDict):
    """Metadata under one label, as JSON by Ogmios' detailed schema and as its CBOR in hex.

    `json` names the type of each value, such as `{"int": 1}`. `cbor` is absent if the node sends no CBOR,
    `json` if the CBOR is not metadata, or if it is nested more than 100 levels deep.
    """

    cbor: NotRequired[str]
    json: NotRequired[dict[str, Any]]


class Withdrawal(TypedDict):
    """Rewards withdrawn from a reward account."""

    stake_address: str
    lovelace: int


class Certificate(TypedDict):
    """A certificate. `type` is Ogmios' name of its type, and decides which of the other fields it has.

    `stakeCredentialRegistration`, `stakeCredentialDeregistration`: `stake_address`, and `deposit` (lovelace)
    if it names one. `stakeDelegation`: `stake_address`, and `pool_id`, `delegate_representative`, or both.
    `stakePoolRegistration`: `pool_id`, `pool`. `stakePoolRetirement`: `pool_id`, `retirement_epoch`.
    `delegateRepresentativeRegistration`, `delegateRepresentativeUpdate`, `delegateRepresentativeRetirement`:
    `delegate_representative`, `deposit` except for an update, `anchor` if it has one.
    `constitutionalCommitteeDelegation`: `committee_member` (cold) and `committee_delegate` (hot).
    `constitutionalCommitteeRetirement`: `committee_member`, `anchor` if it has one. `genesisDelegation`:
    `genesis_delegation`.
    """

    type: str
    stake_address: NotRequired[str]
    pool_id: NotRequired[str]
    pool: NotRequired[PoolRegistration]
    retirement_epoch: NotRequired[int]
    delegate_representative: NotRequired[Representative]
    deposit: NotRequired[int]
    committee_member: NotRequired[LedgerCredential]
    committee_delegate: NotRequired[LedgerCredential]
    genesis_delegation: NotRequired[GenesisDelegation]
    anchor: NotRequired[Anchor]


class PoolRegistration(TypedDict):
    """The registered parameters of a pool. `pledge` and `fixed_cost` are in lovelace, `margin` is the exact
    ratio.
    """

    vrf_key_hash: str
    pledge: int
    fixed_cost: int
    margin: str
    reward_account: str | None
    owners: list[str]
    relays: list[PoolRelay]
    metadata_url: str | None
    metadata_hash: str | None


class PoolRelay(TypedDict):
    """A relay as registered. A host name without a port names an SRV record."""

    port: NotRequired[int]
    ipv4: NotRequired[str]
    ipv6: NotRequired[str]
    hostname: NotRequired[str]


class Representative(TypedDict):
    """A delegate representative: a registered one, or one that always abstains or has no confidence.

    Only a registered one has an id, the hash of a key or of a script.
    """

    type: Literal["abstain", "noConfidence", "registered"]
    id: NotRequired[str]
    origin: NotRequired[Literal["script", "verificationKey"]]


class LedgerCredential(TypedDict):
    """The hash of a key or of a script."""

    id: str
    origin: Literal["script", "verificationKey"]


class GenesisDelegation(TypedDict):
    """The hashes of a genesis key, of its delegate's key, and of its delegate's VRF key."""

    genesis_key_hash: str
    delegate_key_hash: str
    vrf_key_hash: str


class Anchor(TypedDict):
    """The address and the hash of a document."""

    url: str
    hash: str


class EvaluationAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: Evaluation


class Evaluation(TypedDict):
    """The hash of a transaction, and what its scripts need. `budgets` is empty if it has no redeemers."""

    tx_hash: str
    budgets: list[Budget]


class Budget(TypedDict):
    """The execution units that a redeemer needs."""

    purpose: Literal["guard", "mint", "propose", "publish", "spend", "vote", "withdraw"]
    index: int
    memory: int
    cpu: int


class SubmissionAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: Submission


class Submission(TypedDict):
    """A transaction that the node has accepted. It expires at slot `invalid_hereafter`, unless a block holds it."""

    tx_hash: str
    invalid_hereafter: int | None


class SubmittedTransactionAnswer(TypedDict):
    """Data of the node's ledger or of callers, which may change while the last indexed block does not."""

    success: Literal[True]
    data: SubmittedTransaction
    last_updated: LastUpdated


class SubmittedTransaction(TypedDict):
    """What has become of a transaction that a key of the caller's account has submitted.

    `state` is `in_block` if an indexed block holds it; `expired` if none does and none can, as the last
    indexed block is not before slot `invalid_hereafter`; `rolled_back` if a fork has removed its block since
    the node last accepted it, though it may still wait in a mempool; otherwise `pending`. `confirmations` is
    the number of indexed blocks after its own, 0 if that is the last one. `block_no`, `block_hash`, `slot_no`
    and `confirmations` are null unless it is in a block. `submitted_at` is when the node last accepted it
    here.
    """

    tx_hash: str
    state: Literal["expired", "in_block", "pending", "rolled_back"]
    submitted_at: str
    invalid_hereafter: int | None
    block_no: int | None
    block_hash: str | None
    slot_no: int | None
    confirmations: int | None
    rolled_back_at: str | None


class ScriptAnswer(TypedDict):
    """Data of a chain, with its last indexed block."""

    success: Literal[True]
    data: Script
    last_updated: LastUpdated


class Script(TypedDict):
    """A script.

    `cbor` is what its hash is made of, after a byte for the language, and `size` its length in bytes. `json`
    is that of cardano-cli; only native scripts have it, unless they are nested too deeply. `first_tx_hash` is
    the first indexed transaction that showed the script.
    """

    script_hash: str
    language: Literal["native", "plutus:v1", "plutus:v2", "plutus:v3", "plutus:v4"]
    cbor: str
    size: int
    first_tx_hash: str
    first_slot_no: int
    json: NotRequired[dict[str, Any]]


class DatumAnswer(TypedDict):
    """Data of a chain, with its last indexed block."""

    success: Literal[True]
    data: Datum
    last_updated: LastUpdated


class Datum(TypedDict):
    """A datum, as its CBOR in hex and as JSON by the detailed schema of cardano-cli.

    `json` names the type of each value, such as `{"int": 1}`; it is absent if the datum is nested too deeply.
    `first_tx_hash` is the first indexed transaction that showed the datum.
    """

    datum_hash: str
    cbor: str
    first_tx_hash: str
    first_slot_no: int
    json: NotRequired[dict[str, Any]]


class AssetAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: Asset


class Asset(TypedDict):
    """An asset with its metadata.

    `total_supply` is the quantity minted minus the quantity burned. `mint_count` and `burn_count` count
    transactions. The first mint is null if it precedes the first indexed block.
    """

    policy_id: str
    asset_name: str
    asset_name_ascii: str | None
    fingerprint: str
    total_supply: str
    mint_count: int
    burn_count: int
    first_mint_tx: str | None
    first_mint_slot: int | None
    first_mint_time: str | None
    metadata: Metadata | None
    metadata_source: Literal["cip25", "cip68", "registry"] | None


class Metadata(TypedDict):
    """Metadata of an asset from one source. `decimals` and `logo` are null for sources without that field."""

    name: str | None
    ticker: str | None
    description: str | None
    decimals: int | None
    image: str | None
    url: str | None
    logo: str | None


class PolicyAssetPage(TypedDict):
    """A page of a list from a chain, with the last indexed block."""

    success: Literal[True]
    data: list[PolicyAsset]
    pagination: Paging
    last_updated: LastUpdated


class PolicyAsset(TypedDict):
    """An asset of a policy. `asset_name_ascii` is the name as UTF-8 text, null if it is not valid UTF-8."""

    asset_name: str
    asset_name_ascii: str | None
    fingerprint: str
    total_supply: str
    mint_count: int
    burn_count: int


class Paging(TypedDict):
    """The position of a page in its list."""

    limit: int
    offset: int
    total: int
    hasMore: bool


class HolderPage(TypedDict):
    """A page of a list from a chain, with the last indexed block."""

    success: Literal[True]
    data: list[Holder]
    pagination: MorePaging
    last_updated: LastUpdated


class Holder(TypedDict):
    """An address and the quantity in its unspent outputs."""

    address: str
    stake_address: str | None
    quantity: str


class MorePaging(TypedDict):
    """The position of a page, for lists that report only whether there are more results."""

    limit: int
    offset: int
    hasMore: bool


class AssetTransactionPage(TypedDict):
    """A page of a list from a chain, with the last indexed block."""

    success: Literal[True]
    data: list[AssetTransaction]
    pagination: MorePaging
    last_updated: LastUpdated


class AssetTransaction(TypedDict):
    """A transaction with the asset in its outputs, and the total quantity there."""

    tx_hash: str
    block_hash: str
    block_no: int
    slot_no: int
    block_time: str
    quantity: str


class MintPage(TypedDict):
    """A page of a list from a chain, with the last indexed block."""

    success: Literal[True]
    data: list[Mint]
    pagination: Paging
    last_updated: LastUpdated


class Mint(TypedDict):
    """The quantity of an asset that a transaction minted; negative if burned."""

    tx_hash: str
    block_no: int
    slot_no: int
    block_time: str
    quantity: str


class AccountHolderPage(TypedDict):
    """A page of a list from a chain, with the last indexed block."""

    success: Literal[True]
    data: list[AccountHolder]
    pagination: MorePaging
    last_updated: LastUpdated


class AccountHolder(TypedDict):
    """A stake account, or an address that belongs to none, and the quantity in its unspent outputs.

    One of `stake_address` and `address` is null.
    """

    stake_address: str | None
    address: str | None
    quantity: str


class AddressInfoAnswer(TypedDict):
    """Data of a chain, with its last indexed block."""

    success: Literal[True]
    data: AddressInfo
    last_updated: LastUpdated


class AddressInfo(TypedDict):
    """An address (CIP-19) and what it holds. All counts of an address that was never used are 0.

    Byron addresses have no credentials. The stake of a pointer address counts for nobody.
    """

    address: str
    kind: Literal["base", "byron", "enterprise", "pointer"]
    payment_credential: LedgerCredential | None
    stake_credential: LedgerCredential | None
    stake_address: str | None
    lovelace: int
    utxo_count: int
    asset_count: int
    transaction_count: int
    first_transaction: Position | None
    last_transaction: Position | None


class Position(TypedDict):
    """A transaction and its position on the chain."""

    tx_hash: str
    slot_no: int
    block_time: str


class UnspentOutputPage(TypedDict):
    """A page of a list from a chain, with the last indexed block."""

    success: Literal[True]
    data: list[UnspentOutput]
    pagination: PlacePaging
    last_updated: LastUpdated


class UnspentOutput(TypedDict):
    """An output without what spent it, as lists of unspent outputs have it.

    `slot_no` and `block_time` are null if it is part of the genesis. `data_hash` is the hash of its datum,
    and `inline_datum` is the CBOR of its datum in hex, null if the output has only the hash.
    """

    tx_hash: str
    output_index: int
    slot_no: int | None
    block_time: str | None
    address: str
    value: Value
    data_hash: str | None
    inline_datum: str | None
    reference_script_hash: str | None


class PlacePaging(TypedDict):
    """The position of a page in a list of what an address or an account has.

    `next_cursor` is the `cursor` of the next page, with `offset` 0. It is absent on the last page.
    """

    limit: int
    offset: int
    hasMore: bool
    next_cursor: NotRequired[str]


class HoldingPage(TypedDict):
    """A page of a list from a chain, with the last indexed block."""

    success: Literal[True]
    data: list[Holding]
    pagination: PlacePaging
    last_updated: LastUpdated


class Holding(TypedDict):
    """An asset and its quantity in the unspent outputs of an address or an account.

    `asset_name_ascii` is the name as UTF-8 text, null if it is not valid UTF-8.
    """

    policy_id: str
    asset_name: str
    asset_name_ascii: str | None
    fingerprint: str
    quantity: str


class AccountAnswer(TypedDict):
    """Data of the node's ledger or of callers, which may change while the last indexed block does not."""

    success: Literal[True]
    data: Account
    last_updated: LastUpdated


class Account(TypedDict):
    """A stake account and what its addresses hold. All counts of an account that was never used are 0.

    `address_count` is the number of its addresses that were ever used. `rewards` are those that can be
    withdrawn, as last read from the ledger. `registered` is null if the index begins after the genesis and
    has seen no certificate of the account. `active_epoch_no` is the first epoch in which the delegation to
    `pool_id` counts. `delegate_representative` votes for the account; it is null if the account never
    delegated its vote, or if the representative has retired since.
    """

    stake_address: str
    stake_credential: LedgerCredential
    registered: bool | None
    rewards: int
    pool_id: str | None
    active_epoch_no: int | None
    delegate_representative: Representative | None
    address_count: int
    withdrawal_count: int
    lovelace: int
    utxo_count: int
    asset_count: int
    transaction_count: int
    first_transaction: Position | None
    last_transaction: Position | None


class AccountAddressPage(TypedDict):
    """A page of a list from a chain, with the last indexed block."""

    success: Literal[True]
    data: list[AccountAddress]
    pagination: PlacePaging
    last_updated: LastUpdated


class AccountAddress(TypedDict):
    """A payment address of an account."""

    address: str


class DelegationPage(TypedDict):
    """A page of a list from a chain, with the last indexed block."""

    success: Literal[True]
    data: list[Delegation]
    pagination: PlacePaging
    last_updated: LastUpdated


class Delegation(TypedDict):
    """A delegation to a pool, and the first epoch in which it counts.

    The transaction is null if the delegation is part of the genesis.
    """

    pool_id: str
    active_epoch_no: int
    transaction: Position | None


class AccountWithdrawalPage(TypedDict):
    """A page of a list from a chain, with the last indexed block."""

    success: Literal[True]
    data: list[AccountWithdrawal]
    pagination: Paging
    last_updated: LastUpdated


class AccountWithdrawal(TypedDict):
    """Rewards withdrawn by a transaction."""

    tx_hash: str
    slot_no: int
    block_time: str
    lovelace: int


class MadeOutputAnswer(TypedDict):
    """Data of a chain, with its last indexed block."""

    success: Literal[True]
    data: MadeOutput
    last_updated: LastUpdated


class MadeOutput(TypedDict):
    """An output by its reference, spent or not: `spent_by` is the transaction that spent it, null if it is
    unspent.
    """

    tx_hash: str
    output_index: int
    slot_no: int | None
    block_time: str | None
    address: str
    value: Value
    data_hash: str | None
    inline_datum: str | None
    reference_script_hash: str | None
    spent_by: Position | None


class AddressInfoBulk(TypedDict):
    """Data of a chain for each of several ids, in their order; null for an id that does not exist."""

    success: Literal[True]
    data: list[AddressInfo | None]
    last_updated: LastUpdated


class AccountBulk(TypedDict):
    """Data of a chain for each of several ids, in their order; null for an id that does not exist."""

    success: Literal[True]
    data: list[Account | None]
    last_updated: LastUpdated


class FullTransactionBulk(TypedDict):
    """Data of a chain for each of several ids, in their order; null for an id that does not exist."""

    success: Literal[True]
    data: list[FullTransaction | None]
    last_updated: LastUpdated


class AssetBulk(TypedDict):
    """Data of a chain for each of several ids, in their order; null for an id that does not exist."""

    success: Literal[True]
    data: list[Asset | None]
    last_updated: LastUpdated


class MadeOutputBulk(TypedDict):
    """Data of a chain for each of several ids, in their order; null for an id that does not exist."""

    success: Literal[True]
    data: list[MadeOutput | None]
    last_updated: LastUpdated


class StakePoolAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: StakePool


class StakePool(TypedDict):
    """A stake pool: the parameters of its latest registration, its stake and its blocks.

    `margin` is exact if the registered ratio has a finite decimal form. `active_stake` is the snapshot used
    in the current epoch; `live_stake` is the sum of the delegators' amounts: their unspent outputs and their
    rewards as last read from the ledger. `saturation` is 0 until the ledger has been read once.
    """

    pool_id: str
    pool_id_hex: str
    vrf_key_hash: str
    pledge: str
    margin: float
    fixed_cost: str
    reward_account: str | None
    owners: list[str]
    relays: list[Relay]
    metadata_url: str | None
    metadata_hash: str | None
    active_stake: str
    live_stake: str
    delegator_count: int
    blocks_minted: int
    blocks_epoch: int
    saturation: float
    status: Literal["active", "retired", "retiring"]
    retiring_epoch: int | None


class Relay(TypedDict):
    """The address of a pool's relay: either `ipv4`, or `dns`: a host name, or an IPv6 address if there is none.

    `port` is 0 if the certificate names none, as for an SRV record, which contains the port.
    """

    port: int
    ipv4: NotRequired[str]
    dns: NotRequired[str]


class DelegatorsPage(TypedDict):
    """A page of a list inside an object."""

    success: Literal[True]
    data: Delegators
    pagination: Paging


class Delegators(TypedDict):
    """A page of a pool's delegators, largest first."""

    pool_id: str
    delegators: list[Delegator]


class Delegator(TypedDict):
    """A stake credential, the amount that it delegates, and the first epoch in which the delegation counts."""

    stake_address: str
    amount: str
    active_epoch_no: int


class BlockAnswer(TypedDict):
    """Data of a chain, with its last indexed block."""

    success: Literal[True]
    data: Block
    last_updated: LastUpdated


class Block(TypedDict):
    """A block.

    `pool_id` is the pool that made it, or the genesis delegate in the first epochs of Shelley; null in Byron.
    `fees` and `output` are sums over its transactions; `fees` is null if one of them is unknown.
    `previous_block` is null for the first indexed block, `next_block` for the last one.
    """

    block_hash: str
    block_no: int
    slot_no: int
    epoch_no: int
    epoch_slot: int
    block_time: str
    pool_id: str | None
    tx_count: int
    fees: str | None
    output: str
    previous_block: str | None
    next_block: str | None


class BlockTransactionPage(TypedDict):
    """A page of a list from a chain, with the last indexed block."""

    success: Literal[True]
    data: list[BlockTransaction]
    pagination: Paging
    last_updated: LastUpdated


class BlockTransaction(TypedDict):
    """A transaction of a block, `tx_index` is its position there.

    `fee` is null if it depends on an input that precedes the first indexed block, `size` if the node sends no
    CBOR.
    """

    tx_hash: str
    tx_index: int
    fee: int | None
    size: int | None


class EpochAnswer(TypedDict):
    """Data of a chain, with its last indexed block."""

    success: Literal[True]
    data: Epoch
    last_updated: LastUpdated


class Epoch(TypedDict):
    """An epoch: its slots and times, and its blocks as far as indexed.

    `end_time` is the start of the next epoch. `fees` and `output` are lovelace: the known fees of its
    transactions, and their outputs with change included.
    """

    epoch_no: int
    start_time: str
    end_time: str
    first_slot_no: int
    last_slot_no: int
    block_count: int
    tx_count: int
    fees: str
    output: str
    first_block: EpochBlock
    last_block: EpochBlock


class EpochBlock(TypedDict):
    """The first or the last indexed block of an epoch."""

    block_hash: str
    block_no: int
    slot_no: int
    block_time: str


class EpochParametersAnswer(TypedDict):
    """Data of a chain, with its last indexed block."""

    success: Literal[True]
    data: EpochParameters
    last_updated: LastUpdated


class EpochParameters(TypedDict):
    """The protocol parameters of an epoch, twice.

    `ogmios` has the names and forms of Ogmios 7, in which ratios are texts such as `577/10000`. `cardano_cli`
    has those of `cardano-cli query protocol-parameters`, in which a ratio is a number with all its digits or,
    if its decimal form is infinite, an object with `numerator` and `denominator`.
    """

    epoch_no: int
    ogmios: dict[str, Any]
    cardano_cli: dict[str, Any]


class NetworkSummaryAnswer(TypedDict):
    """Data of a chain, with its last indexed block."""

    success: Literal[True]
    data: NetworkSummary
    last_updated: LastUpdated


class NetworkSummary(TypedDict):
    """The state of the network. `supply` is null until the node's ledger has been read once."""

    network: str
    network_magic: int
    tip: NetworkTip
    epoch: NetworkEpoch
    supply: Supply | None
    stake: Stake


class NetworkTip(TypedDict):
    """The last indexed block."""

    block_hash: str
    block_no: int
    slot_no: int
    block_time: str


class NetworkEpoch(TypedDict):
    """The epoch of the last indexed block. `end_time` is the start of the next epoch."""

    epoch_no: int
    epoch_slot: int
    start_time: str
    end_time: str
    first_slot_no: int
    last_slot_no: int


class Supply(TypedDict):
    """Lovelace, as read from the node's ledger at `slot_no`.

    `total` is `max` less `reserves`; `circulating` is `total` less `treasury`, and includes deposits, rewards
    and the fees of the epoch.
    """

    slot_no: int
    max: str
    total: str
    circulating: str
    treasury: str
    reserves: str


class Stake(TypedDict):
    """Lovelace delegated to pools: `live` now, `active` in the snapshot that counts in the current epoch."""

    live: str
    active: str


class GenesisAnswer(TypedDict):
    """Data of a chain, with its last indexed block."""

    success: Literal[True]
    data: Genesis
    last_updated: LastUpdated


class Genesis(TypedDict):
    """The parameters that the whole chain keeps, and the genesis configuration of each era as Ogmios gives it.

    `epoch_length` counts slots of Shelley and later eras. The configurations lack `initialFunds` and
    `initialVouchers`, which are outputs at their addresses; one that the node does not have is null.
    """

    network_magic: int
    start_time: str
    epoch_length: int
    slot_length_ms: int
    active_slots_coefficient: float
    security_parameter: int
    slots_per_kes_period: int
    max_kes_evolutions: int
    update_quorum: int
    max_lovelace_supply: str
    byron: dict[str, Any] | None
    shelley: dict[str, Any]
    alonzo: dict[str, Any] | None
    conway: dict[str, Any] | None


class OwnKeyAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: OwnKey


class OwnKey(TypedDict):
    """The network, limits and restrictions of the key that asks.

    An empty `ip_networks` does not restrict; an empty `scopes` stands for all but `submit`. `remaining` is
    what its minute has left after this request. `expires_at` is the end of this key, even if a rotation has
    set it.
    """

    credential_id: str
    network_id: int
    rate_limit_per_minute: int
    remaining: int
    quota: QuotaState | None
    expires_at: str | None
    ip_networks: list[str]
    scopes: list[str]


class QuotaState(TypedDict):
    """The most requests per day or month (UTC), what is left, and when the next day or month begins."""

    requests: int
    per: Literal["day", "month"]
    remaining: int
    resets_at: str


class UserAccountConfirmation(TypedDict):
    """A successful change, with a message."""

    success: Literal[True]
    data: UserAccount
    message: str


class UserAccount(TypedDict):
    """A partner's customer. `updated_at` is null until the first change."""

    id: str
    admin_key_id: str
    admin_entity_name: str
    external_id: str | None
    name: str
    email: str | None
    metadata: dict[str, Any]
    created_at: str
    updated_at: str | None
    status: Literal["active", "pending", "suspended"]
    billing_plan: str | None


class UserAccountPage(TypedDict):
    """A page of a list."""

    success: Literal[True]
    data: list[UserAccount]
    pagination: Paging


class UserAccountAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: UserAccount


class DeletedUserConfirmation(TypedDict):
    """A successful change, with a message."""

    success: Literal[True]
    data: DeletedUser
    message: str


class DeletedUser(TypedDict):
    """An account that was just deleted, and how many of its credentials were valid until then."""

    id: str
    deleted_at: str
    revoked_credentials: int


class UserUsageAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: UserUsage


class UserUsage(TypedDict):
    """The requests of an account in a period. `credential_count` does not include revoked and expired
    credentials.
    """

    user_account_id: str
    user_name: str
    external_id: str | None
    total_requests: int
    successful_requests: int
    failed_requests: int
    avg_response_time_ms: float
    credential_count: int
    period_start: str
    period_end: str


class UserUsagePage(TypedDict):
    """A page of a list."""

    success: Literal[True]
    data: list[UserUsage]
    pagination: Paging


class IssuedCredentialConfirmation(TypedDict):
    """A successful change, with a message."""

    success: Literal[True]
    data: IssuedCredential
    message: str


class IssuedCredential(TypedDict):
    """A new credential and its key. No later answer shows the key again."""

    credential: Credential
    api_key: str


class Credential(TypedDict):
    """The record of an API key. The key itself is shown only once, when it is created."""

    id: str
    name: str
    description: str | None
    api_key_prefix: str
    created_at: str
    user_account_id: str
    user_account_name: str
    user_external_id: str | None
    admin_key_id: str
    admin_entity_name: str
    network_id: int
    last_used_at: str | None
    expires_at: str | None
    revoked: bool
    revoked_at: str | None
    rate_limit_per_minute: int
    metadata: dict[str, Any]


class CredentialPage(TypedDict):
    """A page of a list."""

    success: Literal[True]
    data: list[Credential]
    pagination: Paging


class CredentialAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: Credential


class CredentialConfirmation(TypedDict):
    """A successful change, with a message."""

    success: Literal[True]
    data: Credential
    message: str


class RevokedCredentialConfirmation(TypedDict):
    """A successful change, with a message."""

    success: Literal[True]
    data: RevokedCredential
    message: str


class RevokedCredential(TypedDict):
    """A credential that was just revoked."""

    id: str
    name: str
    api_key_prefix: str
    user_account_id: str
    user_account_name: str
    admin_key_id: str
    admin_entity_name: str
    network_id: int
    revoked: bool
    revoked_at: str | None


class RotatedCredentialConfirmation(TypedDict):
    """A successful change, with a message."""

    success: Literal[True]
    data: RotatedCredential
    message: str


class RotatedCredential(TypedDict):
    """A credential with a new key, which no later answer shows again, and the key that it replaces."""

    credential: Credential
    api_key: str
    former_key: FormerKey


class FormerKey(TypedDict):
    """A key that a rotation has replaced. It is valid until `ends_at`, unless the credential expires before
    that.
    """

    api_key_prefix: str
    ends_at: str


class LimitsAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: Limits


class Limits(TypedDict):
    """The limits of a credential. All its keys share them. Without a `quota`, only the limit per minute applies."""

    credential_id: str
    rate_limit_per_minute: int
    expires_at: str | None
    quota: Quota | None


class Quota(TypedDict):
    """The most requests that are admitted in each day or month (UTC)."""

    requests: int
    per: Literal["day", "month"]


class LimitsConfirmation(TypedDict):
    """A successful change, with a message."""

    success: Literal[True]
    data: Limits
    message: str


class RestrictionsRecordAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: RestrictionsRecord


class RestrictionsRecord(TypedDict):
    """From where and for what the keys of a credential may be used.

    An empty list does not restrict, but the scope `submit` must be named.
    """

    credential_id: str
    ip_networks: list[str]
    scopes: list[str]


class RestrictionsRecordConfirmation(TypedDict):
    """A successful change, with a message."""

    success: Literal[True]
    data: RestrictionsRecord
    message: str


class ListedUsagePage(TypedDict):
    """A page of a list."""

    success: Literal[True]
    data: list[ListedUsage]
    pagination: TotalPaging


class ListedUsage(TypedDict):
    """The requests of one of the caller's credentials."""

    credential_id: str
    credential_name: str
    api_key_prefix: str
    user_account_id: str
    user_account_name: str
    total_requests: int
    successful_requests: int
    failed_requests: int
    last_used_at: str | None


class TotalPaging(TypedDict):
    """The position of a page, for lists that report only their length."""

    limit: int
    offset: int
    total: int


class CredentialUsageDetailAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: CredentialUsageDetail


class CredentialUsageDetail(TypedDict):
    """The requests of a credential in a period, in total and for each day with requests, newest first."""

    summary: CredentialUsage
    daily: list[Day]


class CredentialUsage(TypedDict):
    """The requests of a credential in a period. Status 2xx and 3xx count as successful, 4xx and 5xx as failed."""

    credential_id: str
    credential_name: str
    api_key_prefix: str
    user_account_id: str
    user_account_name: str
    total_requests: int
    successful_requests: int
    failed_requests: int
    period_start: str
    period_end: str


class Day(TypedDict):
    """The requests of one day (UTC)."""

    date: str
    total_requests: int
    successful_requests: int
    failed_requests: int


class UsagePartPage(TypedDict):
    """A page of a list."""

    success: Literal[True]
    data: list[UsagePart]
    pagination: TotalPaging


class UsagePart(TypedDict):
    """The requests of one period, to one endpoint and with one class of status.

    `endpoint` and `status_class` are each null unless `group_by` includes them. Percentiles are accurate to
    within 12.5 %.
    """

    period_start: str
    endpoint: str | None
    status_class: str | None
    total_requests: int
    avg_response_time_ms: float
    p50_response_time_ms: float
    p95_response_time_ms: float
    p99_response_time_ms: float


class AuditEntryPage(TypedDict):
    """A page of a list."""

    success: Literal[True]
    data: list[AuditEntry]
    pagination: TotalPaging


class AuditEntry(TypedDict):
    """An admin action."""

    id: str
    action: str
    admin_key_id: str
    admin_entity_name: str
    target_id: str | None
    target_type: Literal["admin_key", "credential", "user_account"]
    ip_address: str | None
    details: dict[str, Any]
    created_at: str


class IssuedAdminKeyConfirmation(TypedDict):
    """A successful change, with a message."""

    success: Literal[True]
    data: IssuedAdminKey
    message: str


class IssuedAdminKey(TypedDict):
    """A new admin key. No later answer shows the key again."""

    admin_key: AdminKeyRecord
    key: str


class AdminKeyRecord(TypedDict):
    """The record of an admin key. The key itself is shown only once, when it is created."""

    id: str
    entity_name: str
    key_prefix: str
    permissions: list[str]
    is_bootstrap: bool
    created_at: str
    last_used_at: str | None
    revoked: bool
    revoked_at: str | None


class AdminKeyRecordPage(TypedDict):
    """A page of a list."""

    success: Literal[True]
    data: list[AdminKeyRecord]
    pagination: Paging


class AdminKeyRecordConfirmation(TypedDict):
    """A successful change, with a message."""

    success: Literal[True]
    data: AdminKeyRecord
    message: str


class AliveAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: Alive


class Alive(TypedDict):
    """The process is running."""

    status: Literal["alive"]


class ReadyAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: Ready


class Ready(TypedDict):
    """Chain requests are answered and counted. `degraded` means that something else does not work; see
    `reasons`.
    """

    status: Literal["degraded", "ready"]
    reasons: list[str]
    networks: list[NetworkState]


class NetworkState(TypedDict):
    """The state of one network. Times are in seconds, ages by the database's clock; null if unknown.

    `phase` is `empty` before the first block, `bulk` and `finishing` during the first sync, in which chain
    endpoints answer 503, and then `live`. `tip_age_s` is the age of the last indexed block. `lag_blocks`,
    `lag_slots` and `lag_s` are the distance to the node's tip, null unless the node is connected.
    `network_synchronization` is Ogmios' and Kupo's: the share of the time since the network's start that the
    index covers, 1 if the last block is at most two minutes old. `sync_progress` is the share of the node's
    blocks that are indexed, and `sync_left_s` the time until all are, at the present rate; it is null at the
    tip.

    `node` is `followed`; `syncing` if its tip is old but moves; `stalled` if its tip is old and does not move
    although the node is connected; `lost` if it is not connected; `unknown` if no indexer runs, or while it
    finishes the first sync. `node_since` is when the node was connected or lost. `node_tip_age_s` is the age
    of the node's tip as last heard, and `node_tip_unmoved_s` the time since it changed.

    `indexer_running` is true while an indexer of this network sends heartbeats; `beat_age_s` is the age of
    the last one, and `failing_tasks` lists its background tasks that were failing then. `refused` says why
    the last indexer has stopped by itself. `ready` is true if chain requests are answered from a block that
    is recent enough (READY_LAG_S). `retired` networks have no indexer on purpose. `pools_stake_mismatch` is
    the number of pools whose live stake differed from the node's at the last comparison (one per epoch).
    """

    network: str
    network_id: int
    retired: bool
    ready: bool
    phase: Literal["bulk", "empty", "finishing", "live"]
    slot_no: int | None
    block_no: int | None
    block_time: str | None
    epoch_no: int | None
    first_block_no: int | None
    transactions: int
    tip_age_s: int | None
    lag_blocks: int | None
    lag_slots: int | None
    lag_s: int | None
    network_synchronization: float | None
    sync_progress: float | None
    sync_left_s: int | None
    node: Literal["followed", "lost", "stalled", "syncing", "unknown"]
    node_connected: bool
    node_since: str | None
    node_slot_no: int | None
    node_block_no: int | None
    node_tip_age_s: int | None
    node_tip_unmoved_s: int | None
    indexer_running: bool
    indexer_version: str | None
    beat_age_s: float | None
    failing_tasks: list[str]
    refused: str | None
    rollbacks: int
    last_rollback_at: str | None
    last_rollback_blocks: int | None
    pools_stake_mismatch: int | None


class NetworkReadyAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: NetworkReady


class NetworkReady(TypedDict):
    """Chain requests of this network are answered from a recent block. `degraded` means that something is wrong."""

    status: Literal["degraded", "ready"]
    reasons: list[str]
    network: NetworkState


class StatusAnswer(TypedDict):
    """A successful answer."""

    success: Literal[True]
    data: Status


class Status(TypedDict):
    """The state of the service at a time by the database's clock."""

    at: str
    version: str
    schema_version: int
    networks: list[NetworkStatus]
    usage: UsageStatus


class NetworkStatus(TypedDict):
    """The state of a network as in /ready, with its last hour and its last verification.

    `state` sums it up: `in_step`; `syncing` during the first sync, or while the node is syncing; `behind` if
    the last block is too old for another reason; `node_stalled` and `node_lost`; `down` if no indexer runs;
    `empty` before the first block; `retired`. `last_hour` and `last_verify` are null before the first block,
    and `last_verify` also before the first verification.
    """

    network: str
    network_id: int
    retired: bool
    ready: bool
    phase: Literal["bulk", "empty", "finishing", "live"]
    slot_no: int | None
    block_no: int | None
    block_time: str | None
    epoch_no: int | None
    first_block_no: int | None
    transactions: int
    tip_age_s: int | None
    lag_blocks: int | None
    lag_slots: int | None
    lag_s: int | None
    network_synchronization: float | None
    sync_progress: float | None
    sync_left_s: int | None
    node: Literal["followed", "lost", "stalled", "syncing", "unknown"]
    node_connected: bool
    node_since: str | None
    node_slot_no: int | None
    node_block_no: int | None
    node_tip_age_s: int | None
    node_tip_unmoved_s: int | None
    indexer_running: bool
    indexer_version: str | None
    beat_age_s: float | None
    failing_tasks: list[str]
    refused: str | None
    rollbacks: int
    last_rollback_at: str | None
    last_rollback_blocks: int | None
    pools_stake_mismatch: int | None
    state: Literal["behind", "down", "empty", "in_step", "node_lost", "node_stalled", "retired", "syncing"]
    last_hour: LastHour | None
    last_verify: Verification | None


class LastHour(TypedDict):
    """The blocks of the last hour by the clock: their number in each of its 60 minutes, and their transactions."""

    blocks: list[int]
    transactions: int


class Verification(TypedDict):
    """The last verification of an index, up to the block at `slot_no`.

    `node_blocks` is the number of blocks that were compared with the node, null if none were. `differing`
    lists the checks that found differences; it is empty if everything matched.
    """

    began_at: str
    ended_at: str
    slot_no: int
    block_no: int
    node_blocks: int | None
    differing: list[str]


class UsageStatus(TypedDict):
    """Usage on its way from the answering host to the statistics; null if unknown.

    `queued` is the number of batches in the queue. `waiting_bytes` is the size of all requests that are not
    in the statistics yet, and `lag_s` the age of the oldest one.
    """

    queued: int | None
    waiting_bytes: int | None
    lag_s: float | None


class Failure(TypedDict):
    """An error."""

    success: Literal[False]
    error: str
