// The objects of answers. Made by `python -m clients.generate` from the table of routes; do not edit.

/** A page of a list from a chain, with the last indexed block. */
export interface TransactionPage {
  success: true;
  data: Array<Transaction>;
  pagination: CursorPaging;
  last_updated: LastUpdated;
}

/**
 * A transaction with its inputs and outputs.
 *
 * If its scripts failed, these are its collateral inputs and its collateral return. `fee` is null if it depends
 * on an input that precedes the first indexed block, `size` if the node sends no CBOR.
 */
export interface Transaction {
  tx_hash: string;
  block_hash: string;
  slot_no: number;
  block_no: number;
  block_time: string;
  fee: bigint | null;
  size: number | null;
  inputs: Array<Input>;
  outputs: Array<Output>;
}

/** A spent output. Address and value are null if the output precedes the first indexed block. */
export interface Input {
  tx_hash: string;
  output_index: number;
  address: string | null;
  value: Value | null;
}

/**
 * Lovelace and native assets.
 *
 * `assets` maps `<policy_id>.<asset_name>` to quantities. With `groupByPolicy`, it maps policy ids to maps from
 * asset names to quantities. It is absent if there are no assets.
 */
export interface Value {
  lovelace: bigint;
  assets?: Record<string, bigint | Record<string, bigint>>;
}

/** An output of a transaction. */
export interface Output {
  output_index: number;
  address: string;
  value: Value;
}

/**
 * The position of a page in the transactions of an address or an account.
 *
 * `next_cursor` is the `fromSlot` of the next page, with `offset` 0. It is absent on the last page, and on a
 * page that ends inside a slot; in the latter case, continue with `offset` + `limit`.
 */
export interface CursorPaging {
  limit: number;
  offset: number;
  total: number;
  hasMore: boolean;
  next_cursor?: number;
}

/** The last indexed block, read in the same snapshot as the data. */
export interface LastUpdated {
  slot_no: number;
  block_hash: string;
  block_time: string;
}

/** A page of a list from a chain, with the last indexed block. */
export interface HistoryEntryPage {
  success: true;
  data: Array<HistoryEntry>;
  pagination: CursorPaging;
  last_updated: LastUpdated;
}

/** The position of a transaction on the chain. */
export interface HistoryEntry {
  tx_hash: string;
  block_hash: string;
  slot_no: number;
  block_no: number;
  block_time: string;
}

/** Data of a chain, with its last indexed block. */
export interface FullTransactionAnswer {
  success: true;
  data: FullTransaction;
  last_updated: LastUpdated;
}

/**
 * A transaction in full.
 *
 * `mint` has negative quantities for burned assets; `metadata` is keyed by label; `certificates` are in their
 * order.
 */
export interface FullTransaction {
  tx_hash: string;
  block_hash: string;
  slot_no: number;
  block_no: number;
  block_time: string;
  fee: bigint | null;
  size: number | null;
  inputs: Array<Input>;
  outputs: Array<Output>;
  valid: boolean;
  metadata: Record<string, LabelMetadata>;
  mint: Record<string, bigint | Record<string, bigint>>;
  withdrawals: Array<Withdrawal>;
  certificates: Array<Certificate>;
  invalid_before: bigint | null;
  invalid_hereafter: bigint | null;
}

/**
 * Metadata under one label, as JSON by Ogmios' detailed schema and as its CBOR in hex.
 *
 * `json` names the type of each value, such as `{"int": 1}`. `cbor` is absent if the node sends no CBOR, `json`
 * if the CBOR is not metadata, or if it is nested more than 100 levels deep.
 */
export interface LabelMetadata {
  cbor?: string;
  json?: Record<string, unknown>;
}

/** Rewards withdrawn from a reward account. */
export interface Withdrawal {
  stake_address: string;
  lovelace: bigint;
}

/**
 * A certificate. `type` is Ogmios' name of its type, and decides which of the other fields it has.
 *
 * `stakeCredentialRegistration`, `stakeCredentialDeregistration`: `stake_address`, and `deposit` (lovelace) if
 * it names one. `stakeDelegation`: `stake_address`, and `pool_id`, `delegate_representative`, or both.
 * `stakePoolRegistration`: `pool_id`, `pool`. `stakePoolRetirement`: `pool_id`, `retirement_epoch`.
 * `delegateRepresentativeRegistration`, `delegateRepresentativeUpdate`, `delegateRepresentativeRetirement`:
 * `delegate_representative`, `deposit` except for an update, `anchor` if it has one.
 * `constitutionalCommitteeDelegation`: `committee_member` (cold) and `committee_delegate` (hot).
 * `constitutionalCommitteeRetirement`: `committee_member`, `anchor` if it has one. `genesisDelegation`:
 * `genesis_delegation`.
 */
export interface Certificate {
  type: string;
  stake_address?: string;
  pool_id?: string;
  pool?: PoolRegistration;
  retirement_epoch?: number;
  delegate_representative?: Representative;
  deposit?: bigint;
  committee_member?: LedgerCredential;
  committee_delegate?: LedgerCredential;
  genesis_delegation?: GenesisDelegation;
  anchor?: Anchor;
}

/** The registered parameters of a pool. `pledge` and `fixed_cost` are in lovelace, `margin` is the exact ratio. */
export interface PoolRegistration {
  vrf_key_hash: string;
  pledge: bigint;
  fixed_cost: bigint;
  margin: string;
  reward_account: string | null;
  owners: Array<string>;
  relays: Array<PoolRelay>;
  metadata_url: string | null;
  metadata_hash: string | null;
}

/** A relay as registered. A host name without a port names an SRV record. */
export interface PoolRelay {
  port?: number;
  ipv4?: string;
  ipv6?: string;
  hostname?: string;
}

/**
 * A delegate representative: a registered one, or one that always abstains or has no confidence.
 *
 * Only a registered one has an id, the hash of a key or of a script.
 */
export interface Representative {
  type: "abstain" | "noConfidence" | "registered";
  id?: string;
  origin?: "script" | "verificationKey";
}

/** The hash of a key or of a script. */
export interface LedgerCredential {
  id: string;
  origin: "script" | "verificationKey";
}

/** The hashes of a genesis key, of its delegate's key, and of its delegate's VRF key. */
export interface GenesisDelegation {
  genesis_key_hash: string;
  delegate_key_hash: string;
  vrf_key_hash: string;
}

/** The address and the hash of a document. */
export interface Anchor {
  url: string;
  hash: string;
}

/** A successful answer. */
export interface EvaluationAnswer {
  success: true;
  data: Evaluation;
}

/** The hash of a transaction, and what its scripts need. `budgets` is empty if it has no redeemers. */
export interface Evaluation {
  tx_hash: string;
  budgets: Array<Budget>;
}

/** The execution units that a redeemer needs. */
export interface Budget {
  purpose: "guard" | "mint" | "propose" | "publish" | "spend" | "vote" | "withdraw";
  index: number;
  memory: bigint;
  cpu: bigint;
}

/** A successful answer. */
export interface SubmissionAnswer {
  success: true;
  data: Submission;
}

/** A transaction that the node has accepted. It expires at slot `invalid_hereafter`, unless a block holds it. */
export interface Submission {
  tx_hash: string;
  invalid_hereafter: bigint | null;
}

/** Data of the node's ledger or of callers, which may change while the last indexed block does not. */
export interface SubmittedTransactionAnswer {
  success: true;
  data: SubmittedTransaction;
  last_updated: LastUpdated;
}

/**
 * What has become of a transaction that a key of the caller's account has submitted.
 *
 * `state` is `in_block` if an indexed block holds it; `expired` if none does and none can, as the last indexed
 * block is not before slot `invalid_hereafter`; `rolled_back` if a fork has removed its block since the node
 * last accepted it, though it may still wait in a mempool; otherwise `pending`. `confirmations` is the number of
 * indexed blocks after its own, 0 if that is the last one. `block_no`, `block_hash`, `slot_no` and
 * `confirmations` are null unless it is in a block. `submitted_at` is when the node last accepted it here.
 */
export interface SubmittedTransaction {
  tx_hash: string;
  state: "expired" | "in_block" | "pending" | "rolled_back";
  submitted_at: string;
  invalid_hereafter: bigint | null;
  block_no: number | null;
  block_hash: string | null;
  slot_no: number | null;
  confirmations: number | null;
  rolled_back_at: string | null;
}

/** Data of a chain, with its last indexed block. */
export interface ScriptAnswer {
  success: true;
  data: Script;
  last_updated: LastUpdated;
}

/**
 * A script.
 *
 * `cbor` is what its hash is made of, after a byte for the language, and `size` its length in bytes. `json` is
 * that of cardano-cli; only native scripts have it, unless they are nested too deeply. `first_tx_hash` is the
 * first indexed transaction that showed the script.
 */
export interface Script {
  script_hash: string;
  language: "native" | "plutus:v1" | "plutus:v2" | "plutus:v3" | "plutus:v4";
  cbor: string;
  size: number;
  first_tx_hash: string;
  first_slot_no: number;
  json?: Record<string, unknown>;
}

/** Data of a chain, with its last indexed block. */
export interface DatumAnswer {
  success: true;
  data: Datum;
  last_updated: LastUpdated;
}

/**
 * A datum, as its CBOR in hex and as JSON by the detailed schema of cardano-cli.
 *
 * `json` names the type of each value, such as `{"int": 1}`; it is absent if the datum is nested too deeply.
 * `first_tx_hash` is the first indexed transaction that showed the datum.
 */
export interface Datum {
  datum_hash: string;
  cbor: string;
  first_tx_hash: string;
  first_slot_no: number;
  json?: Record<string, unknown>;
}

/** A successful answer. */
export interface AssetAnswer {
  success: true;
  data: Asset;
}

/**
 * An asset with its metadata.
 *
 * `total_supply` is the quantity minted minus the quantity burned. `mint_count` and `burn_count` count
 * transactions. The first mint is null if it precedes the first indexed block.
 */
export interface Asset {
  policy_id: string;
  asset_name: string;
  asset_name_ascii: string | null;
  fingerprint: string;
  total_supply: bigint;
  mint_count: number;
  burn_count: number;
  first_mint_tx: string | null;
  first_mint_slot: number | null;
  first_mint_time: string | null;
  metadata: Metadata | null;
  metadata_source: "cip25" | "cip68" | "registry" | null;
}

/** Metadata of an asset from one source. `decimals` and `logo` are null for sources without that field. */
export interface Metadata {
  name: string | null;
  ticker: string | null;
  description: string | null;
  decimals: number | null;
  image: string | null;
  url: string | null;
  logo: string | null;
}

/** A page of a list from a chain, with the last indexed block. */
export interface PolicyAssetPage {
  success: true;
  data: Array<PolicyAsset>;
  pagination: Paging;
  last_updated: LastUpdated;
}

/** An asset of a policy. `asset_name_ascii` is the name as UTF-8 text, null if it is not valid UTF-8. */
export interface PolicyAsset {
  asset_name: string;
  asset_name_ascii: string | null;
  fingerprint: string;
  total_supply: bigint;
  mint_count: number;
  burn_count: number;
}

/** The position of a page in its list. */
export interface Paging {
  limit: number;
  offset: number;
  total: number;
  hasMore: boolean;
}

/** A page of a list from a chain, with the last indexed block. */
export interface HolderPage {
  success: true;
  data: Array<Holder>;
  pagination: MorePaging;
  last_updated: LastUpdated;
}

/** An address and the quantity in its unspent outputs. */
export interface Holder {
  address: string;
  stake_address: string | null;
  quantity: bigint;
}

/** The position of a page, for lists that report only whether there are more results. */
export interface MorePaging {
  limit: number;
  offset: number;
  hasMore: boolean;
}

/** A page of a list from a chain, with the last indexed block. */
export interface AssetTransactionPage {
  success: true;
  data: Array<AssetTransaction>;
  pagination: MorePaging;
  last_updated: LastUpdated;
}

/** A transaction with the asset in its outputs, and the total quantity there. */
export interface AssetTransaction {
  tx_hash: string;
  block_hash: string;
  block_no: number;
  slot_no: number;
  block_time: string;
  quantity: bigint;
}

/** A page of a list from a chain, with the last indexed block. */
export interface MintPage {
  success: true;
  data: Array<Mint>;
  pagination: Paging;
  last_updated: LastUpdated;
}

/** The quantity of an asset that a transaction minted; negative if burned. */
export interface Mint {
  tx_hash: string;
  block_no: number;
  slot_no: number;
  block_time: string;
  quantity: bigint;
}

/** A page of a list from a chain, with the last indexed block. */
export interface AccountHolderPage {
  success: true;
  data: Array<AccountHolder>;
  pagination: MorePaging;
  last_updated: LastUpdated;
}

/**
 * A stake account, or an address that belongs to none, and the quantity in its unspent outputs.
 *
 * One of `stake_address` and `address` is null.
 */
export interface AccountHolder {
  stake_address: string | null;
  address: string | null;
  quantity: bigint;
}

/** Data of a chain, with its last indexed block. */
export interface AddressInfoAnswer {
  success: true;
  data: AddressInfo;
  last_updated: LastUpdated;
}

/**
 * An address (CIP-19) and what it holds. All counts of an address that was never used are 0.
 *
 * Byron addresses have no credentials. The stake of a pointer address counts for nobody.
 */
export interface AddressInfo {
  address: string;
  kind: "base" | "byron" | "enterprise" | "pointer";
  payment_credential: LedgerCredential | null;
  stake_credential: LedgerCredential | null;
  stake_address: string | null;
  lovelace: bigint;
  utxo_count: number;
  asset_count: number;
  transaction_count: number;
  first_transaction: Position | null;
  last_transaction: Position | null;
}

/** A transaction and its position on the chain. */
export interface Position {
  tx_hash: string;
  slot_no: number;
  block_time: string;
}

/** A page of a list from a chain, with the last indexed block. */
export interface UnspentOutputPage {
  success: true;
  data: Array<UnspentOutput>;
  pagination: PlacePaging;
  last_updated: LastUpdated;
}

/**
 * An output without what spent it, as lists of unspent outputs have it.
 *
 * `slot_no` and `block_time` are null if it is part of the genesis. `data_hash` is the hash of its datum, and
 * `inline_datum` is the CBOR of its datum in hex, null if the output has only the hash.
 */
export interface UnspentOutput {
  tx_hash: string;
  output_index: number;
  slot_no: number | null;
  block_time: string | null;
  address: string;
  value: Value;
  data_hash: string | null;
  inline_datum: string | null;
  reference_script_hash: string | null;
}

/**
 * The position of a page in a list of what an address or an account has.
 *
 * `next_cursor` is the `cursor` of the next page, with `offset` 0. It is absent on the last page.
 */
export interface PlacePaging {
  limit: number;
  offset: number;
  hasMore: boolean;
  next_cursor?: string;
}

/** A page of a list from a chain, with the last indexed block. */
export interface HoldingPage {
  success: true;
  data: Array<Holding>;
  pagination: PlacePaging;
  last_updated: LastUpdated;
}

/**
 * An asset and its quantity in the unspent outputs of an address or an account.
 *
 * `asset_name_ascii` is the name as UTF-8 text, null if it is not valid UTF-8.
 */
export interface Holding {
  policy_id: string;
  asset_name: string;
  asset_name_ascii: string | null;
  fingerprint: string;
  quantity: bigint;
}

/** Data of the node's ledger or of callers, which may change while the last indexed block does not. */
export interface AccountAnswer {
  success: true;
  data: Account;
  last_updated: LastUpdated;
}

/**
 * A stake account and what its addresses hold. All counts of an account that was never used are 0.
 *
 * `address_count` is the number of its addresses that were ever used. `rewards` are those that can be withdrawn,
 * as last read from the ledger. `registered` is null if the index begins after the genesis and has seen no
 * certificate of the account. `active_epoch_no` is the first epoch in which the delegation to `pool_id` counts.
 * `delegate_representative` votes for the account; it is null if the account never delegated its vote, or if the
 * representative has retired since.
 */
export interface Account {
  stake_address: string;
  stake_credential: LedgerCredential;
  registered: boolean | null;
  rewards: bigint;
  pool_id: string | null;
  active_epoch_no: number | null;
  delegate_representative: Representative | null;
  address_count: number;
  withdrawal_count: number;
  lovelace: bigint;
  utxo_count: number;
  asset_count: number;
  transaction_count: number;
  first_transaction: Position | null;
  last_transaction: Position | null;
}

/** A page of a list from a chain, with the last indexed block. */
export interface AccountAddressPage {
  success: true;
  data: Array<AccountAddress>;
  pagination: PlacePaging;
  last_updated: LastUpdated;
}

/** A payment address of an account. */
export interface AccountAddress {
  address: string;
}

/** A page of a list from a chain, with the last indexed block. */
export interface DelegationPage {
  success: true;
  data: Array<Delegation>;
  pagination: PlacePaging;
  last_updated: LastUpdated;
}

/**
 * A delegation to a pool, and the first epoch in which it counts.
 *
 * The transaction is null if the delegation is part of the genesis.
 */
export interface Delegation {
  pool_id: string;
  active_epoch_no: number;
  transaction: Position | null;
}

/** A page of a list from a chain, with the last indexed block. */
export interface AccountWithdrawalPage {
  success: true;
  data: Array<AccountWithdrawal>;
  pagination: Paging;
  last_updated: LastUpdated;
}

/** Rewards withdrawn by a transaction. */
export interface AccountWithdrawal {
  tx_hash: string;
  slot_no: number;
  block_time: string;
  lovelace: bigint;
}

/** Data of a chain, with its last indexed block. */
export interface MadeOutputAnswer {
  success: true;
  data: MadeOutput;
  last_updated: LastUpdated;
}

/** An output by its reference, spent or not: `spent_by` is the transaction that spent it, null if it is unspent. */
export interface MadeOutput {
  tx_hash: string;
  output_index: number;
  slot_no: number | null;
  block_time: string | null;
  address: string;
  value: Value;
  data_hash: string | null;
  inline_datum: string | null;
  reference_script_hash: string | null;
  spent_by: Position | null;
}

/** Data of a chain for each of several ids, in their order; null for an id that does not exist. */
export interface AddressInfoBulk {
  success: true;
  data: Array<AddressInfo | null>;
  last_updated: LastUpdated;
}

/** Data of a chain for each of several ids, in their order; null for an id that does not exist. */
export interface AccountBulk {
  success: true;
  data: Array<Account | null>;
  last_updated: LastUpdated;
}

/** Data of a chain for each of several ids, in their order; null for an id that does not exist. */
export interface FullTransactionBulk {
  success: true;
  data: Array<FullTransaction | null>;
  last_updated: LastUpdated;
}

/** Data of a chain for each of several ids, in their order; null for an id that does not exist. */
export interface AssetBulk {
  success: true;
  data: Array<Asset | null>;
  last_updated: LastUpdated;
}

/** Data of a chain for each of several ids, in their order; null for an id that does not exist. */
export interface MadeOutputBulk {
  success: true;
  data: Array<MadeOutput | null>;
  last_updated: LastUpdated;
}

/** A successful answer. */
export interface StakePoolAnswer {
  success: true;
  data: StakePool;
}

/**
 * A stake pool: the parameters of its latest registration, its stake and its blocks.
 *
 * `margin` is exact if the registered ratio has a finite decimal form. `active_stake` is the snapshot used in
 * the current epoch; `live_stake` is the sum of the delegators' amounts: their unspent outputs and their rewards
 * as last read from the ledger. `saturation` is 0 until the ledger has been read once.
 */
export interface StakePool {
  pool_id: string;
  pool_id_hex: string;
  vrf_key_hash: string;
  pledge: bigint;
  margin: number;
  fixed_cost: bigint;
  reward_account: string | null;
  owners: Array<string>;
  relays: Array<Relay>;
  metadata_url: string | null;
  metadata_hash: string | null;
  active_stake: bigint;
  live_stake: bigint;
  delegator_count: number;
  blocks_minted: number;
  blocks_epoch: number;
  saturation: number;
  status: "active" | "retired" | "retiring";
  retiring_epoch: number | null;
}

/**
 * The address of a pool's relay: either `ipv4`, or `dns`: a host name, or an IPv6 address if there is none.
 *
 * `port` is 0 if the certificate names none, as for an SRV record, which contains the port.
 */
export interface Relay {
  port: number;
  ipv4?: string;
  dns?: string;
}

/** A page of a list inside an object. */
export interface DelegatorsPage {
  success: true;
  data: Delegators;
  pagination: Paging;
}

/** A page of a pool's delegators, largest first. */
export interface Delegators {
  pool_id: string;
  delegators: Array<Delegator>;
}

/** A stake credential, the amount that it delegates, and the first epoch in which the delegation counts. */
export interface Delegator {
  stake_address: string;
  amount: bigint;
  active_epoch_no: number;
}

/** Data of a chain, with its last indexed block. */
export interface BlockAnswer {
  success: true;
  data: Block;
  last_updated: LastUpdated;
}

/**
 * A block.
 *
 * `pool_id` is the pool that made it, or the genesis delegate in the first epochs of Shelley; null in Byron.
 * `fees` and `output` are sums over its transactions; `fees` is null if one of them is unknown. `previous_block`
 * is null for the first indexed block, `next_block` for the last one.
 */
export interface Block {
  block_hash: string;
  block_no: number;
  slot_no: number;
  epoch_no: number;
  epoch_slot: number;
  block_time: string;
  pool_id: string | null;
  tx_count: number;
  fees: bigint | null;
  output: bigint;
  previous_block: string | null;
  next_block: string | null;
}

/** A page of a list from a chain, with the last indexed block. */
export interface BlockTransactionPage {
  success: true;
  data: Array<BlockTransaction>;
  pagination: Paging;
  last_updated: LastUpdated;
}

/**
 * A transaction of a block, `tx_index` is its position there.
 *
 * `fee` is null if it depends on an input that precedes the first indexed block, `size` if the node sends no
 * CBOR.
 */
export interface BlockTransaction {
  tx_hash: string;
  tx_index: number;
  fee: bigint | null;
  size: number | null;
}

/** Data of a chain, with its last indexed block. */
export interface EpochAnswer {
  success: true;
  data: Epoch;
  last_updated: LastUpdated;
}

/**
 * An epoch: its slots and times, and its blocks as far as indexed.
 *
 * `end_time` is the start of the next epoch. `fees` and `output` are lovelace: the known fees of its
 * transactions, and their outputs with change included.
 */
export interface Epoch {
  epoch_no: number;
  start_time: string;
  end_time: string;
  first_slot_no: number;
  last_slot_no: number;
  block_count: number;
  tx_count: number;
  fees: bigint;
  output: bigint;
  first_block: EpochBlock;
  last_block: EpochBlock;
}

/** The first or the last indexed block of an epoch. */
export interface EpochBlock {
  block_hash: string;
  block_no: number;
  slot_no: number;
  block_time: string;
}

/** Data of a chain, with its last indexed block. */
export interface EpochParametersAnswer {
  success: true;
  data: EpochParameters;
  last_updated: LastUpdated;
}

/**
 * The protocol parameters of an epoch, twice.
 *
 * `ogmios` has the names and forms of Ogmios 7, in which ratios are texts such as `577/10000`. `cardano_cli` has
 * those of `cardano-cli query protocol-parameters`, in which a ratio is a number with all its digits or, if its
 * decimal form is infinite, an object with `numerator` and `denominator`.
 */
export interface EpochParameters {
  epoch_no: number;
  ogmios: Record<string, unknown>;
  cardano_cli: Record<string, unknown>;
}

/** Data of a chain, with its last indexed block. */
export interface NetworkSummaryAnswer {
  success: true;
  data: NetworkSummary;
  last_updated: LastUpdated;
}

/** The state of the network. `supply` is null until the node's ledger has been read once. */
export interface NetworkSummary {
  network: string;
  network_magic: number;
  tip: NetworkTip;
  epoch: NetworkEpoch;
  supply: Supply | null;
  stake: Stake;
}

/** The last indexed block. */
export interface NetworkTip {
  block_hash: string;
  block_no: number;
  slot_no: number;
  block_time: string;
}

/** The epoch of the last indexed block. `end_time` is the start of the next epoch. */
export interface NetworkEpoch {
  epoch_no: number;
  epoch_slot: number;
  start_time: string;
  end_time: string;
  first_slot_no: number;
  last_slot_no: number;
}

/**
 * Lovelace, as read from the node's ledger at `slot_no`.
 *
 * `total` is `max` less `reserves`; `circulating` is `total` less `treasury`, and includes deposits, rewards and
 * the fees of the epoch.
 */
export interface Supply {
  slot_no: number;
  max: bigint;
  total: bigint;
  circulating: bigint;
  treasury: bigint;
  reserves: bigint;
}

/** Lovelace delegated to pools: `live` now, `active` in the snapshot that counts in the current epoch. */
export interface Stake {
  live: bigint;
  active: bigint;
}

/** Data of a chain, with its last indexed block. */
export interface GenesisAnswer {
  success: true;
  data: Genesis;
  last_updated: LastUpdated;
}

/**
 * The parameters that the whole chain keeps, and the genesis configuration of each era as Ogmios gives it.
 *
 * `epoch_length` counts slots of Shelley and later eras. The configurations lack `initialFunds` and
 * `initialVouchers`, which are outputs at their addresses; one that the node does not have is null.
 */
export interface Genesis {
  network_magic: number;
  start_time: string;
  epoch_length: number;
  slot_length_ms: number;
  active_slots_coefficient: number;
  security_parameter: number;
  slots_per_kes_period: number;
  max_kes_evolutions: number;
  update_quorum: number;
  max_lovelace_supply: bigint;
  byron: Record<string, unknown> | null;
  shelley: Record<string, unknown>;
  alonzo: Record<string, unknown> | null;
  conway: Record<string, unknown> | null;
}

/** A successful answer. */
export interface OwnKeyAnswer {
  success: true;
  data: OwnKey;
}

/**
 * The network, limits and restrictions of the key that asks.
 *
 * An empty `ip_networks` does not restrict; an empty `scopes` stands for all but `submit`. `remaining` is what
 * its minute has left after this request. `expires_at` is the end of this key, even if a rotation has set it.
 */
export interface OwnKey {
  credential_id: string;
  network_id: number;
  rate_limit_per_minute: number;
  remaining: number;
  quota: QuotaState | null;
  expires_at: string | null;
  ip_networks: Array<string>;
  scopes: Array<string>;
}

/** The most requests per day or month (UTC), what is left, and when the next day or month begins. */
export interface QuotaState {
  requests: number;
  per: "day" | "month";
  remaining: number;
  resets_at: string;
}

/** A successful change, with a message. */
export interface UserAccountConfirmation {
  success: true;
  data: UserAccount;
  message: string;
}

/** A partner's customer. `updated_at` is null until the first change. */
export interface UserAccount {
  id: string;
  admin_key_id: string;
  admin_entity_name: string;
  external_id: string | null;
  name: string;
  email: string | null;
  metadata: Record<string, unknown>;
  created_at: string;
  updated_at: string | null;
  status: "active" | "pending" | "suspended";
  billing_plan: string | null;
}

/** A page of a list. */
export interface UserAccountPage {
  success: true;
  data: Array<UserAccount>;
  pagination: Paging;
}

/** A successful answer. */
export interface UserAccountAnswer {
  success: true;
  data: UserAccount;
}

/** A successful change, with a message. */
export interface DeletedUserConfirmation {
  success: true;
  data: DeletedUser;
  message: string;
}

/** An account that was just deleted, and how many of its credentials were valid until then. */
export interface DeletedUser {
  id: string;
  deleted_at: string;
  revoked_credentials: number;
}

/** A successful answer. */
export interface UserUsageAnswer {
  success: true;
  data: UserUsage;
}

/** The requests of an account in a period. `credential_count` does not include revoked and expired credentials. */
export interface UserUsage {
  user_account_id: string;
  user_name: string;
  external_id: string | null;
  total_requests: number;
  successful_requests: number;
  failed_requests: number;
  avg_response_time_ms: number;
  credential_count: number;
  period_start: string;
  period_end: string;
}

/** A page of a list. */
export interface UserUsagePage {
  success: true;
  data: Array<UserUsage>;
  pagination: Paging;
}

/** A successful change, with a message. */
export interface IssuedCredentialConfirmation {
  success: true;
  data: IssuedCredential;
  message: string;
}

/** A new credential and its key. No later answer shows the key again. */
export interface IssuedCredential {
  credential: Credential;
  api_key: string;
}

/** The record of an API key. The key itself is shown only once, when it is created. */
export interface Credential {
  id: string;
  name: string;
  description: string | null;
  api_key_prefix: string;
  created_at: string;
  user_account_id: string;
  user_account_name: string;
  user_external_id: string | null;
  admin_key_id: string;
  admin_entity_name: string;
  network_id: number;
  last_used_at: string | null;
  expires_at: string | null;
  revoked: boolean;
  revoked_at: string | null;
  rate_limit_per_minute: number;
  metadata: Record<string, unknown>;
}

/** A page of a list. */
export interface CredentialPage {
  success: true;
  data: Array<Credential>;
  pagination: Paging;
}

/** A successful answer. */
export interface CredentialAnswer {
  success: true;
  data: Credential;
}

/** A successful change, with a message. */
export interface CredentialConfirmation {
  success: true;
  data: Credential;
  message: string;
}

/** A successful change, with a message. */
export interface RevokedCredentialConfirmation {
  success: true;
  data: RevokedCredential;
  message: string;
}

/** A credential that was just revoked. */
export interface RevokedCredential {
  id: string;
  name: string;
  api_key_prefix: string;
  user_account_id: string;
  user_account_name: string;
  admin_key_id: string;
  admin_entity_name: string;
  network_id: number;
  revoked: boolean;
  revoked_at: string | null;
}

/** A successful change, with a message. */
export interface RotatedCredentialConfirmation {
  success: true;
  data: RotatedCredential;
  message: string;
}

/** A credential with a new key, which no later answer shows again, and the key that it replaces. */
export interface RotatedCredential {
  credential: Credential;
  api_key: string;
  former_key: FormerKey;
}

/** A key that a rotation has replaced. It is valid until `ends_at`, unless the credential expires before that. */
export interface FormerKey {
  api_key_prefix: string;
  ends_at: string;
}

/** A successful answer. */
export interface LimitsAnswer {
  success: true;
  data: Limits;
}

/** The limits of a credential. All its keys share them. Without a `quota`, only the limit per minute applies. */
export interface Limits {
  credential_id: string;
  rate_limit_per_minute: number;
  expires_at: string | null;
  quota: Quota | null;
}

/** The most requests that are admitted in each day or month (UTC). */
export interface Quota {
  requests: number;
  per: "day" | "month";
}

/** A successful change, with a message. */
export interface LimitsConfirmation {
  success: true;
  data: Limits;
  message: string;
}

/** A successful answer. */
export interface RestrictionsRecordAnswer {
  success: true;
  data: RestrictionsRecord;
}

/**
 * From where and for what the keys of a credential may be used.
 *
 * An empty list does not restrict, but the scope `submit` must be named.
 */
export interface RestrictionsRecord {
  credential_id: string;
  ip_networks: Array<string>;
  scopes: Array<string>;
}

/** A successful change, with a message. */
export interface RestrictionsRecordConfirmation {
  success: true;
  data: RestrictionsRecord;
  message: string;
}

/** A page of a list. */
export interface ListedUsagePage {
  success: true;
  data: Array<ListedUsage>;
  pagination: TotalPaging;
}

/** The requests of one of the caller's credentials. */
export interface ListedUsage {
  credential_id: string;
  credential_name: string;
  api_key_prefix: string;
  user_account_id: string;
  user_account_name: string;
  total_requests: number;
  successful_requests: number;
  failed_requests: number;
  last_used_at: string | null;
}

/** The position of a page, for lists that report only their length. */
export interface TotalPaging {
  limit: number;
  offset: number;
  total: number;
}

/** A successful answer. */
export interface CredentialUsageDetailAnswer {
  success: true;
  data: CredentialUsageDetail;
}

/** The requests of a credential in a period, in total and for each day with requests, newest first. */
export interface CredentialUsageDetail {
  summary: CredentialUsage;
  daily: Array<Day>;
}

/** The requests of a credential in a period. Status 2xx and 3xx count as successful, 4xx and 5xx as failed. */
export interface CredentialUsage {
  credential_id: string;
  credential_name: string;
  api_key_prefix: string;
  user_account_id: string;
  user_account_name: string;
  total_requests: number;
  successful_requests: number;
  failed_requests: number;
  period_start: string;
  period_end: string;
}

/** The requests of one day (UTC). */
export interface Day {
  date: string;
  total_requests: number;
  successful_requests: number;
  failed_requests: number;
}

/** A page of a list. */
export interface UsagePartPage {
  success: true;
  data: Array<UsagePart>;
  pagination: TotalPaging;
}

/**
 * The requests of one period, to one endpoint and with one class of status.
 *
 * `endpoint` and `status_class` are each null unless `group_by` includes them. Percentiles are accurate to
 * within 12.5 %.
 */
export interface UsagePart {
  period_start: string;
  endpoint: string | null;
  status_class: string | null;
  total_requests: number;
  avg_response_time_ms: number;
  p50_response_time_ms: number;
  p95_response_time_ms: number;
  p99_response_time_ms: number;
}

/** A page of a list. */
export interface AuditEntryPage {
  success: true;
  data: Array<AuditEntry>;
  pagination: TotalPaging;
}

/** An admin action. */
export interface AuditEntry {
  id: string;
  action: string;
  admin_key_id: string;
  admin_entity_name: string;
  target_id: string | null;
  target_type: "admin_key" | "credential" | "user_account";
  ip_address: string | null;
  details: Record<string, unknown>;
  created_at: string;
}

/** A successful change, with a message. */
export interface IssuedAdminKeyConfirmation {
  success: true;
  data: IssuedAdminKey;
  message: string;
}

/** A new admin key. No later answer shows the key again. */
export interface IssuedAdminKey {
  admin_key: AdminKeyRecord;
  key: string;
}

/** The record of an admin key. The key itself is shown only once, when it is created. */
export interface AdminKeyRecord {
  id: string;
  entity_name: string;
  key_prefix: string;
  permissions: Array<string>;
  is_bootstrap: boolean;
  created_at: string;
  last_used_at: string | null;
  revoked: boolean;
  revoked_at: string | null;
}

/** A page of a list. */
export interface AdminKeyRecordPage {
  success: true;
  data: Array<AdminKeyRecord>;
  pagination: Paging;
}

/** A successful change, with a message. */
export interface AdminKeyRecordConfirmation {
  success: true;
  data: AdminKeyRecord;
  message: string;
}

/** A successful answer. */
export interface AliveAnswer {
  success: true;
  data: Alive;
}

/** The process is running. */
export interface Alive {
  status: "alive";
}

/** A successful answer. */
export interface ReadyAnswer {
  success: true;
  data: Ready;
}

/** Chain requests are answered and counted. `degraded` means that something else does not work; see `reasons`. */
export interface Ready {
  status: "degraded" | "ready";
  reasons: Array<string>;
  networks: Array<NetworkState>;
}

/**
 * The state of one network. Times are in seconds, ages by the database's clock; null if unknown.
 *
 * `phase` is `empty` before the first block, `bulk` and `finishing` during the first sync, in which chain
 * endpoints answer 503, and then `live`. `tip_age_s` is the age of the last indexed block. `lag_blocks`,
 * `lag_slots` and `lag_s` are the distance to the node's tip, null unless the node is connected.
 * `network_synchronization` is Ogmios' and Kupo's: the share of the time since the network's start that the
 * index covers, 1 if the last block is at most two minutes old. `sync_progress` is the share of the node's
 * blocks that are indexed, and `sync_left_s` the time until all are, at the present rate; it is null at the tip.
 *
 * `node` is `followed`; `syncing` if its tip is old but moves; `stalled` if its tip is old and does not move
 * although the node is connected; `lost` if it is not connected; `unknown` if no indexer runs, or while it
 * finishes the first sync. `node_since` is when the node was connected or lost. `node_tip_age_s` is the age of
 * the node's tip as last heard, and `node_tip_unmoved_s` the time since it changed.
 *
 * `indexer_running` is true while an indexer of this network sends heartbeats; `beat_age_s` is the age of the
 * last one, and `failing_tasks` lists its background tasks that were failing then. `refused` says why the last
 * indexer has stopped by itself. `ready` is true if chain requests are answered from a block that is recent
 * enough (READY_LAG_S). `retired` networks have no indexer on purpose. `pools_stake_mismatch` is the number of
 * pools whose live stake differed from the node's at the last comparison (one per epoch).
 */
export interface NetworkState {
  network: string;
  network_id: number;
  retired: boolean;
  ready: boolean;
  phase: "bulk" | "empty" | "finishing" | "live";
  slot_no: number | null;
  block_no: number | null;
  block_time: string | null;
  epoch_no: number | null;
  first_block_no: number | null;
  transactions: number;
  tip_age_s: number | null;
  lag_blocks: number | null;
  lag_slots: number | null;
  lag_s: number | null;
  network_synchronization: number | null;
  sync_progress: number | null;
  sync_left_s: number | null;
  node: "followed" | "lost" | "stalled" | "syncing" | "unknown";
  node_connected: boolean;
  node_since: string | null;
  node_slot_no: number | null;
  node_block_no: number | null;
  node_tip_age_s: number | null;
  node_tip_unmoved_s: number | null;
  indexer_running: boolean;
  indexer_version: string | null;
  beat_age_s: number | null;
  failing_tasks: Array<string>;
  refused: string | null;
  rollbacks: number;
  last_rollback_at: string | null;
  last_rollback_blocks: number | null;
  pools_stake_mismatch: number | null;
}

/** A successful answer. */
export interface NetworkReadyAnswer {
  success: true;
  data: NetworkReady;
}

/** Chain requests of this network are answered from a recent block. `degraded` means that something is wrong. */
export interface NetworkReady {
  status: "degraded" | "ready";
  reasons: Array<string>;
  network: NetworkState;
}

/** A successful answer. */
export interface StatusAnswer {
  success: true;
  data: Status;
}

/** The state of the service at a time by the database's clock. */
export interface Status {
  at: string;
  version: string;
  schema_version: number;
  networks: Array<NetworkStatus>;
  usage: UsageStatus;
}

/**
 * The state of a network as in /ready, with its last hour and its last verification.
 *
 * `state` sums it up: `in_step`; `syncing` during the first sync, or while the node is syncing; `behind` if the
 * last block is too old for another reason; `node_stalled` and `node_lost`; `down` if no indexer runs; `empty`
 * before the first block; `retired`. `last_hour` and `last_verify` are null before the first block, and
 * `last_verify` also before the first verification.
 */
export interface NetworkStatus {
  network: string;
  network_id: number;
  retired: boolean;
  ready: boolean;
  phase: "bulk" | "empty" | "finishing" | "live";
  slot_no: number | null;
  block_no: number | null;
  block_time: string | null;
  epoch_no: number | null;
  first_block_no: number | null;
  transactions: number;
  tip_age_s: number | null;
  lag_blocks: number | null;
  lag_slots: number | null;
  lag_s: number | null;
  network_synchronization: number | null;
  sync_progress: number | null;
  sync_left_s: number | null;
  node: "followed" | "lost" | "stalled" | "syncing" | "unknown";
  node_connected: boolean;
  node_since: string | null;
  node_slot_no: number | null;
  node_block_no: number | null;
  node_tip_age_s: number | null;
  node_tip_unmoved_s: number | null;
  indexer_running: boolean;
  indexer_version: string | null;
  beat_age_s: number | null;
  failing_tasks: Array<string>;
  refused: string | null;
  rollbacks: number;
  last_rollback_at: string | null;
  last_rollback_blocks: number | null;
  pools_stake_mismatch: number | null;
  state: "behind" | "down" | "empty" | "in_step" | "node_lost" | "node_stalled" | "retired" | "syncing";
  last_hour: LastHour | null;
  last_verify: Verification | null;
}

/** The blocks of the last hour by the clock: their number in each of its 60 minutes, and their transactions. */
export interface LastHour {
  blocks: Array<number>;
  transactions: number;
}

/**
 * The last verification of an index, up to the block at `slot_no`.
 *
 * `node_blocks` is the number of blocks that were compared with the node, null if none were. `differing` lists
 * the checks that found differences; it is empty if everything matched.
 */
export interface Verification {
  began_at: string;
  ended_at: string;
  slot_no: number;
  block_no: number;
  node_blocks: number | null;
  differing: Array<string>;
}

/**
 * Usage on its way from the answering host to the statistics; null if unknown.
 *
 * `queued` is the number of batches in the queue. `waiting_bytes` is the size of all requests that are not in
 * the statistics yet, and `lag_s` the age of the oldest one.
 */
export interface UsageStatus {
  queued: number | null;
  waiting_bytes: number | null;
  lag_s: number | null;
}

/** An error. */
export interface Failure {
  success: false;
  error: string;
}
