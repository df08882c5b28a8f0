// The client: one method for each operation. Made by `python -m clients.generate` from the table of routes; do not edit.

import { type CallOptions, Http } from "./http.js";
import * as operations from "./operations.js";
import type * as types from "./types.js";

/** Options of `listTransactions`. */
export type ListTransactionsOptions = {
  /** Number of results to skip. */
  offset?: number | undefined;
  /** List transactions at or before this slot or, if `order` is `asc`, at or after it. */
  fromSlot?: number | undefined;
  /** Sort order, by slot, then position in the block: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Nest assets by policy id, then by asset name; otherwise keys are `<policy_id>.<asset_name>`. */
  groupByPolicy?: boolean | undefined;
};

/** Options of `listTransactionHistory`. */
export type ListTransactionHistoryOptions = {
  /** Number of results to skip. */
  offset?: number | undefined;
  /** List transactions at or before this slot or, if `order` is `asc`, at or after it. */
  fromSlot?: number | undefined;
  /** Sort order, by slot, then position in the block: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
  /** Maximum number of results. */
  limit?: number | undefined;
};

/** Options of `getTransaction`. */
export type GetTransactionOptions = {
  /** Nest assets by policy id, then by asset name; otherwise keys are `<policy_id>.<asset_name>`. */
  groupByPolicy?: boolean | undefined;
};

/** Options of `evaluateTransaction`. */
export type EvaluateTransactionOptions = {
  cbor: string;
};

/** Options of `submitTransaction`. */
export type SubmitTransactionOptions = {
  cbor: string;
};

/** Options of `getAsset`. */
export type GetAssetOptions = {
  /** Source of the metadata. `auto` uses the first of cip68, cip25 and registry that has any. */
  metadata_source?: "auto" | "cip68" | "cip25" | "registry" | undefined;
};

/** Options of `listPolicyAssets`. */
export type ListPolicyAssetsOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by total supply, then asset name: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
};

/** Options of `listPolicyHolders`. */
export type ListPolicyHoldersOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by total quantity, ties in a fixed order: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
};

/** Options of `listAssetHolders`. */
export type ListAssetHoldersOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by quantity, ties in a fixed order: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
};

/** Options of `listAssetTransactions`. */
export type ListAssetTransactionsOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by slot, then position in the block: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
};

/** Options of `listAssetMints`. */
export type ListAssetMintsOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by slot, then position in the block: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
};

/** Options of `listPolicyAccountHolders`. */
export type ListPolicyAccountHoldersOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by total quantity, ties in a fixed order: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
};

/** Options of `listAssetAccountHolders`. */
export type ListAssetAccountHoldersOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by quantity, ties in a fixed order: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
};

/** Options of `listAddressUtxos`. */
export type ListAddressUtxosOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by slot, position in the block and index: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
  /** Asset as `<policy_id>.<asset_name>` in hex, or as its fingerprint. The dot is optional before a name. */
  asset?: string | undefined;
  /** Continue after a page of this list: its `next_cursor`. `offset` counts from there. */
  cursor?: string | undefined;
};

/** Options of `listAddressAssets`. */
export type ListAddressAssetsOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by number in the index (roughly the order of first use): `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
  /** Continue after a page of this list: its `next_cursor`. `offset` counts from there. */
  cursor?: string | undefined;
};

/** Options of `listAccountAddresses`. */
export type ListAccountAddressesOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by number in the index (roughly the order of first use): `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
  /** Continue after a page of this list: its `next_cursor`. `offset` counts from there. */
  cursor?: string | undefined;
};

/** Options of `listAccountUtxos`. */
export type ListAccountUtxosOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by slot, position in the block and index: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
  /** Asset as `<policy_id>.<asset_name>` in hex, or as its fingerprint. The dot is optional before a name. */
  asset?: string | undefined;
  /** Continue after a page of this list: its `next_cursor`. `offset` counts from there. */
  cursor?: string | undefined;
};

/** Options of `listAccountAssets`. */
export type ListAccountAssetsOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by number in the index (roughly the order of first use): `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
  /** Continue after a page of this list: its `next_cursor`. `offset` counts from there. */
  cursor?: string | undefined;
};

/** Options of `listAccountTransactionHistory`. */
export type ListAccountTransactionHistoryOptions = {
  /** Number of results to skip. */
  offset?: number | undefined;
  /** List transactions at or before this slot or, if `order` is `asc`, at or after it. */
  fromSlot?: number | undefined;
  /** Sort order, by slot, then position in the block: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
  /** Maximum number of results. */
  limit?: number | undefined;
};

/** Options of `listAccountTransactions`. */
export type ListAccountTransactionsOptions = {
  /** Number of results to skip. */
  offset?: number | undefined;
  /** List transactions at or before this slot or, if `order` is `asc`, at or after it. */
  fromSlot?: number | undefined;
  /** Sort order, by slot, then position in the block: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Nest assets by policy id, then by asset name; otherwise keys are `<policy_id>.<asset_name>`. */
  groupByPolicy?: boolean | undefined;
};

/** Options of `listAccountDelegations`. */
export type ListAccountDelegationsOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by slot, then position in the block: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
  /** Continue after a page of this list: its `next_cursor`. `offset` counts from there. */
  cursor?: string | undefined;
};

/** Options of `listAccountWithdrawals`. */
export type ListAccountWithdrawalsOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by slot, then position in the block: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
};

/** Options of `getAddresses`. */
export type GetAddressesOptions = {
  ids: Array<string>;
};

/** Options of `getAccounts`. */
export type GetAccountsOptions = {
  ids: Array<string>;
};

/** Options of `getTransactions`. */
export type GetTransactionsOptions = {
  ids: Array<string>;
};

/** Options of `getAssets`. */
export type GetAssetsOptions = {
  ids: Array<string>;
};

/** Options of `getUtxos`. */
export type GetUtxosOptions = {
  ids: Array<string>;
};

/** Options of `listPoolDelegators`. */
export type ListPoolDelegatorsOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
};

/** Options of `listBlockTransactions`. */
export type ListBlockTransactionsOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Sort order, by position in the block: `desc` lists the newest or largest first. */
  order?: "asc" | "desc" | undefined;
};

/** Options of `createUser`. */
export type CreateUserOptions = {
  name: string;
  /** Your own reference for the customer, unique among your accounts. */
  external_id?: string | null | undefined;
  email?: string | null | undefined;
  /** Any JSON object of your own. */
  metadata?: Record<string, unknown> | null | undefined;
  billing_plan?: string | null | undefined;
};

/** Options of `listUsers`. */
export type ListUsersOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** List only those with this status. */
  status?: "active" | "suspended" | "pending" | undefined;
  /** Your own reference for the customer. */
  external_id?: string | undefined;
  /**
   * List only those that contain this text, ignoring case: users by name, reference or email, credentials by name,
   * description or key prefix.
   */
  search?: string | undefined;
};

/** Options of `updateUser`. */
export type UpdateUserOptions = {
  name?: string | undefined;
  /** Your own reference for the customer, unique among your accounts. */
  external_id?: string | null | undefined;
  email?: string | null | undefined;
  /** Any JSON object of your own. */
  metadata?: Record<string, unknown> | null | undefined;
  billing_plan?: string | null | undefined;
};

/** Options of `getUserUsage`. */
export type GetUserUsageOptions = {
  /** Start (inclusive). A date without a time means 00:00 UTC. */
  start_date?: string | undefined;
  /** End. A time at the beginning of a minute excludes that minute; a date without a time includes that whole day. */
  end_date?: string | undefined;
};

/** Options of `listUsageByUser`. */
export type ListUsageByUserOptions = {
  /** Start (inclusive). A date without a time means 00:00 UTC. */
  start_date?: string | undefined;
  /** End. A time at the beginning of a minute excludes that minute; a date without a time includes that whole day. */
  end_date?: string | undefined;
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
};

/** Options of `createCredential`. */
export type CreateCredentialOptions = {
  name: string;
  user_account_id: string;
  /** The network of the key: 0 is mainnet, 1 preview, 2 preprod. `/v1/status` lists those that the service has. */
  network_id: number;
  description?: string | null | undefined;
  /** When the key expires. A date without a time means 00:00 UTC. */
  expires_at?: string | null | undefined;
  /** How many requests are admitted in any 60 seconds. */
  rate_limit_per_minute?: number | null | undefined;
  /** Any JSON object of your own. */
  metadata?: Record<string, unknown> | null | undefined;
};

/** Options of `listCredentials`. */
export type ListCredentialsOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /** Include revoked credentials. */
  includeRevoked?: boolean | undefined;
  /** List only credentials of this account. */
  user_account_id?: string | undefined;
  /** List only credentials for this network: 0 is mainnet, 1 preview, 2 preprod. */
  network_id?: number | undefined;
  /** List only those with this status. */
  status?: "active" | "expired" | "revoked" | undefined;
  /**
   * List only those that contain this text, ignoring case: users by name, reference or email, credentials by name,
   * description or key prefix.
   */
  search?: string | undefined;
  /** List only active credentials that expire within this number of days. */
  expires_within?: number | undefined;
};

/** Options of `updateCredential`. */
export type UpdateCredentialOptions = {
  name?: string | undefined;
  description?: string | null | undefined;
};

/** Options of `rotateCredential`. */
export type RotateCredentialOptions = {
  /** For how long the former key remains valid; with 0, it expires at once. */
  overlap_seconds: number;
};

/** Options of `updateCredentialLimits`. */
export type UpdateCredentialLimitsOptions = {
  /** How many requests are admitted in any 60 seconds. */
  rate_limit_per_minute?: number | undefined;
  /** When the key expires. A date without a time means 00:00 UTC. */
  expires_at?: string | null | undefined;
  /** How many requests are admitted per day or calendar month, in UTC. */
  quota?: { requests: number; per: "day" | "month" } | null | undefined;
};

/** Options of `updateCredentialRestrictions`. */
export type UpdateCredentialRestrictionsOptions = {
  /** Networks from which the key may be used, in CIDR notation. */
  ip_networks?: Array<string> | null | undefined;
  /** Kinds of chain endpoints that the key may call. */
  scopes?: Array<"transactions" | "assets" | "pools" | "network" | "accounts" | "submit"> | null | undefined;
};

/** Options of `listUsageByCredential`. */
export type ListUsageByCredentialOptions = {
  /** Start (inclusive). A date without a time means 00:00 UTC. */
  start_date?: string | undefined;
  /** End. A time at the beginning of a minute excludes that minute; a date without a time includes that whole day. */
  end_date?: string | undefined;
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
};

/** Options of `getCredentialUsage`. */
export type GetCredentialUsageOptions = {
  /** Start (inclusive). A date without a time means 00:00 UTC. */
  start_date?: string | undefined;
  /** End. A time at the beginning of a minute excludes that minute; a date without a time includes that whole day. */
  end_date?: string | undefined;
};

/** Options of `listCredentialUsageBreakdown`. */
export type ListCredentialUsageBreakdownOptions = {
  /** Start (inclusive). A date without a time means 00:00 UTC. */
  start_date?: string | undefined;
  /** End. A time at the beginning of a minute excludes that minute; a date without a time includes that whole day. */
  end_date?: string | undefined;
  /** Length of the periods in UTC. */
  granularity?: "hour" | "day" | "month" | undefined;
  /** Dimensions to group by within a period. */
  group_by?: "endpoint_and_status" | "endpoint" | "status" | "none" | undefined;
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
};

/** Options of `listUserUsageBreakdown`. */
export type ListUserUsageBreakdownOptions = {
  /** Start (inclusive). A date without a time means 00:00 UTC. */
  start_date?: string | undefined;
  /** End. A time at the beginning of a minute excludes that minute; a date without a time includes that whole day. */
  end_date?: string | undefined;
  /** Length of the periods in UTC. */
  granularity?: "hour" | "day" | "month" | undefined;
  /** Dimensions to group by within a period. */
  group_by?: "endpoint_and_status" | "endpoint" | "status" | "none" | undefined;
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
};

/** Options of `exportUsage`. */
export type ExportUsageOptions = {
  /** Start (inclusive). A date without a time means 00:00 UTC. */
  start_date?: string | undefined;
  /** End. A time at the beginning of a minute excludes that minute; a date without a time includes that whole day. */
  end_date?: string | undefined;
  /** Length of the periods in UTC. */
  granularity?: "hour" | "day" | "month" | undefined;
  /** `csv` with a header line, or `ndjson`: one JSON object a line. */
  format?: "csv" | "ndjson" | undefined;
};

/** Options of `listAuditLogs`. */
export type ListAuditLogsOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
  /**
   * List only entries with this action: `credential.created`, `credential.updated`, `credential.rotated`,
   * `credential.revoked`, `credential.viewed`, `credential.listed`, `user_account.created`,
   * `user_account.updated`, `user_account.suspended`, `user_account.reactivated`, `user_account.deleted`,
   * `user_account.viewed`, `user_account.listed`, `admin_key.created`, `admin_key.revoked`.
   */
  action?: string | undefined;
  /** List only entries of this admin key. */
  admin_key_id?: string | undefined;
  /** List only entries about this resource. */
  target_id?: string | undefined;
  /** List only entries about this kind of resource. */
  target_type?: "credential" | "user_account" | "admin_key" | undefined;
  /** List only entries of the request with this `X-Request-Id`. */
  request_id?: string | undefined;
  /** List only entries from this time on. A date without a time means 00:00 UTC. */
  from?: string | undefined;
  /** List only entries up to this time. A date without a time includes that whole day. */
  to?: string | undefined;
};

/** Options of `createAdminKey`. */
export type CreateAdminKeyOptions = {
  entity_name: string;
  permissions?: Array<"manage_users" | "manage_credentials" | "view_usage" | "view_audit_logs"> | null | undefined;
};

/** Options of `listAdminKeys`. */
export type ListAdminKeysOptions = {
  /** Maximum number of results. */
  limit?: number | undefined;
  /** Number of results to skip. */
  offset?: number | undefined;
};

/** A Ledgerline service: `new Ledgerline(url, { apiKey: "…", adminKey: "…" })`. */
export class Ledgerline extends Http {
  /** List the transactions of an address with their inputs and outputs. */
  listTransactions(
    address: string,
    options: ListTransactionsOptions = {},
    call: CallOptions = {},
  ): Promise<types.TransactionPage> {
    return this.call(operations.listTransactions, { address }, options, call);
  }

  /** Every item of `listTransactions`, page by page. */
  iterateTransactions(
    address: string,
    options: Omit<ListTransactionsOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.Transaction, void, undefined> {
    return this.pages(operations.listTransactions, { address }, options, call);
  }

  /**
   * List the transactions of an address.
   *
   * A transaction is listed if it spends from the address or pays to it.
   */
  listTransactionHistory(
    address: string,
    options: ListTransactionHistoryOptions = {},
    call: CallOptions = {},
  ): Promise<types.HistoryEntryPage> {
    return this.call(operations.listTransactionHistory, { address }, options, call);
  }

  /** Every item of `listTransactionHistory`, page by page. */
  iterateTransactionHistory(
    address: string,
    options: Omit<ListTransactionHistoryOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.HistoryEntry, void, undefined> {
    return this.pages(operations.listTransactionHistory, { address }, options, call);
  }

  /** Get a transaction by hash. */
  getTransaction(
    txHash: string,
    options: GetTransactionOptions = {},
    call: CallOptions = {},
  ): Promise<types.FullTransactionAnswer> {
    return this.call(operations.getTransaction, { hash: txHash }, options, call);
  }

  /**
   * Evaluate the scripts of a transaction.
   *
   * The transaction need not be signed. Its inputs must be unspent.
   */
  evaluateTransaction(
    options: EvaluateTransactionOptions,
    call: CallOptions = {},
  ): Promise<types.EvaluationAnswer> {
    return this.call(operations.evaluateTransaction, {}, options, call);
  }

  /**
   * Submit a signed transaction.
   *
   * A transaction that the node already has, in its mempool or in a block, is accepted again: if an answer was
   * lost, send the same request. `GET /v1/tx/submitted/{hash}` says what becomes of it.
   */
  submitTransaction(
    options: SubmitTransactionOptions,
    call: CallOptions = {},
  ): Promise<types.SubmissionAnswer> {
    return this.call(operations.submitTransaction, {}, options, call);
  }

  /**
   * Follow a submitted transaction.
   *
   * Every key of the account that has submitted it, with the scope `submit`, sees it.
   */
  getSubmittedTransaction(txHash: string, call: CallOptions = {}): Promise<types.SubmittedTransactionAnswer> {
    return this.call(operations.getSubmittedTransaction, { hash: txHash }, {}, call);
  }

  /**
   * Resubmit a transaction that a key of the account has submitted, for example after a fork has removed its
   * block.
   *
   * One that waits in the node's mempool is accepted again; one that is in a block or has expired is refused.
   */
  resubmitTransaction(txHash: string, call: CallOptions = {}): Promise<types.SubmissionAnswer> {
    return this.call(operations.resubmitTransaction, { hash: txHash }, {}, call);
  }

  /** Get a script by hash. */
  getScript(scriptHash: string, call: CallOptions = {}): Promise<types.ScriptAnswer> {
    return this.call(operations.getScript, { scriptHash }, {}, call);
  }

  /** Get a datum by hash. */
  getDatum(datumHash: string, call: CallOptions = {}): Promise<types.DatumAnswer> {
    return this.call(operations.getDatum, { datumHash }, {}, call);
  }

  /**
   * Get an asset.
   *
   * With `metadata_source=auto`, metadata comes from the first source that has any, in the order cip68, cip25,
   * registry. Any other value reads that source only. If the registry does not answer, the header `Metadata-
   * Warning` says so, and `metadata` is what the registry said within the last day, or null.
   */
  getAsset(asset: string, options: GetAssetOptions = {}, call: CallOptions = {}): Promise<types.AssetAnswer> {
    return this.call(operations.getAsset, { asset }, options, call);
  }

  /** List the assets of a policy by supply, including burned ones. Ties are ordered by name. */
  listPolicyAssets(
    policyId: string,
    options: ListPolicyAssetsOptions = {},
    call: CallOptions = {},
  ): Promise<types.PolicyAssetPage> {
    return this.call(operations.listPolicyAssets, { policyId }, options, call);
  }

  /** Every item of `listPolicyAssets`, page by page. */
  iteratePolicyAssets(
    policyId: string,
    options: Omit<ListPolicyAssetsOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.PolicyAsset, void, undefined> {
    return this.pages(operations.listPolicyAssets, { policyId }, options, call);
  }

  /** List holders of a policy by total quantity. */
  listPolicyHolders(
    policyId: string,
    options: ListPolicyHoldersOptions = {},
    call: CallOptions = {},
  ): Promise<types.HolderPage> {
    return this.call(operations.listPolicyHolders, { policyId }, options, call);
  }

  /** Every item of `listPolicyHolders`, page by page. */
  iteratePolicyHolders(
    policyId: string,
    options: Omit<ListPolicyHoldersOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.Holder, void, undefined> {
    return this.pages(operations.listPolicyHolders, { policyId }, options, call);
  }

  /** List holders of an asset by quantity. */
  listAssetHolders(
    asset: string,
    options: ListAssetHoldersOptions = {},
    call: CallOptions = {},
  ): Promise<types.HolderPage> {
    return this.call(operations.listAssetHolders, { asset }, options, call);
  }

  /** Every item of `listAssetHolders`, page by page. */
  iterateAssetHolders(
    asset: string,
    options: Omit<ListAssetHoldersOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.Holder, void, undefined> {
    return this.pages(operations.listAssetHolders, { asset }, options, call);
  }

  /** List the transactions with an asset in at least one output. */
  listAssetTransactions(
    asset: string,
    options: ListAssetTransactionsOptions = {},
    call: CallOptions = {},
  ): Promise<types.AssetTransactionPage> {
    return this.call(operations.listAssetTransactions, { asset }, options, call);
  }

  /** Every item of `listAssetTransactions`, page by page. */
  iterateAssetTransactions(
    asset: string,
    options: Omit<ListAssetTransactionsOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.AssetTransaction, void, undefined> {
    return this.pages(operations.listAssetTransactions, { asset }, options, call);
  }

  /** List mints and burns of an asset, with one net quantity per transaction. */
  listAssetMints(
    asset: string,
    options: ListAssetMintsOptions = {},
    call: CallOptions = {},
  ): Promise<types.MintPage> {
    return this.call(operations.listAssetMints, { asset }, options, call);
  }

  /** Every item of `listAssetMints`, page by page. */
  iterateAssetMints(
    asset: string,
    options: Omit<ListAssetMintsOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.Mint, void, undefined> {
    return this.pages(operations.listAssetMints, { asset }, options, call);
  }

  /**
   * List holders of a policy by stake account.
   *
   * They are sorted by total quantity. An address without a stake account has its own entry.
   */
  listPolicyAccountHolders(
    policyId: string,
    options: ListPolicyAccountHoldersOptions = {},
    call: CallOptions = {},
  ): Promise<types.AccountHolderPage> {
    return this.call(operations.listPolicyAccountHolders, { policyId }, options, call);
  }

  /** Every item of `listPolicyAccountHolders`, page by page. */
  iteratePolicyAccountHolders(
    policyId: string,
    options: Omit<ListPolicyAccountHoldersOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.AccountHolder, void, undefined> {
    return this.pages(operations.listPolicyAccountHolders, { policyId }, options, call);
  }

  /**
   * List holders of an asset by stake account.
   *
   * They are sorted by quantity. An address without a stake account has its own entry.
   */
  listAssetAccountHolders(
    asset: string,
    options: ListAssetAccountHoldersOptions = {},
    call: CallOptions = {},
  ): Promise<types.AccountHolderPage> {
    return this.call(operations.listAssetAccountHolders, { asset }, options, call);
  }

  /** Every item of `listAssetAccountHolders`, page by page. */
  iterateAssetAccountHolders(
    asset: string,
    options: Omit<ListAssetAccountHoldersOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.AccountHolder, void, undefined> {
    return this.pages(operations.listAssetAccountHolders, { asset }, options, call);
  }

  /**
   * Download all holders of an asset as CSV, the largest first.
   *
   * All lines are from one block; the name of the file has its slot.
   */
  exportAssetHolders(asset: string, call: CallOptions = {}): Promise<string> {
    return this.call(operations.exportAssetHolders, { asset }, {}, call);
  }

  /** The lines of `exportAssetHolders` as they arrive, each with its line end. */
  streamAssetHolders(asset: string, call: CallOptions = {}): AsyncGenerator<string, void, undefined> {
    return this.lines(operations.exportAssetHolders, { asset }, {}, call);
  }

  /**
   * Download all holders of an asset by stake account as CSV, the largest first.
   *
   * All lines are from one block; the name of the file has its slot.
   */
  exportAssetAccountHolders(asset: string, call: CallOptions = {}): Promise<string> {
    return this.call(operations.exportAssetAccountHolders, { asset }, {}, call);
  }

  /** The lines of `exportAssetAccountHolders` as they arrive, each with its line end. */
  streamAssetAccountHolders(asset: string, call: CallOptions = {}): AsyncGenerator<string, void, undefined> {
    return this.lines(operations.exportAssetAccountHolders, { asset }, {}, call);
  }

  /**
   * Download all holders of a policy as CSV, the largest first.
   *
   * All lines are from one block; the name of the file has its slot.
   */
  exportPolicyHolders(policyId: string, call: CallOptions = {}): Promise<string> {
    return this.call(operations.exportPolicyHolders, { policyId }, {}, call);
  }

  /** The lines of `exportPolicyHolders` as they arrive, each with its line end. */
  streamPolicyHolders(policyId: string, call: CallOptions = {}): AsyncGenerator<string, void, undefined> {
    return this.lines(operations.exportPolicyHolders, { policyId }, {}, call);
  }

  /**
   * Download all holders of a policy by stake account as CSV, the largest first.
   *
   * All lines are from one block; the name of the file has its slot.
   */
  exportPolicyAccountHolders(policyId: string, call: CallOptions = {}): Promise<string> {
    return this.call(operations.exportPolicyAccountHolders, { policyId }, {}, call);
  }

  /** The lines of `exportPolicyAccountHolders` as they arrive, each with its line end. */
  streamPolicyAccountHolders(
    policyId: string,
    call: CallOptions = {},
  ): AsyncGenerator<string, void, undefined> {
    return this.lines(operations.exportPolicyAccountHolders, { policyId }, {}, call);
  }

  /**
   * Get an address.
   *
   * The answer has its credentials, what it holds, and its first and last transaction.
   */
  getAddress(address: string, call: CallOptions = {}): Promise<types.AddressInfoAnswer> {
    return this.call(operations.getAddress, { address }, {}, call);
  }

  /**
   * List the unspent outputs of an address.
   *
   * With `asset`, only those that hold it.
   */
  listAddressUtxos(
    address: string,
    options: ListAddressUtxosOptions = {},
    call: CallOptions = {},
  ): Promise<types.UnspentOutputPage> {
    return this.call(operations.listAddressUtxos, { address }, options, call);
  }

  /** Every item of `listAddressUtxos`, page by page. */
  iterateAddressUtxos(
    address: string,
    options: Omit<ListAddressUtxosOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.UnspentOutput, void, undefined> {
    return this.pages(operations.listAddressUtxos, { address }, options, call);
  }

  /** List the assets in the unspent outputs of an address. */
  listAddressAssets(
    address: string,
    options: ListAddressAssetsOptions = {},
    call: CallOptions = {},
  ): Promise<types.HoldingPage> {
    return this.call(operations.listAddressAssets, { address }, options, call);
  }

  /** Every item of `listAddressAssets`, page by page. */
  iterateAddressAssets(
    address: string,
    options: Omit<ListAddressAssetsOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.Holding, void, undefined> {
    return this.pages(operations.listAddressAssets, { address }, options, call);
  }

  /**
   * Get a stake account.
   *
   * The answer has its pool and representative, its rewards, what its addresses hold, and its first and last
   * transaction.
   */
  getAccount(stakeAddress: string, call: CallOptions = {}): Promise<types.AccountAnswer> {
    return this.call(operations.getAccount, { stake_address: stakeAddress }, {}, call);
  }

  /**
   * List the addresses of a stake account that were ever used.
   *
   * Their order is fixed, and roughly that of their first use.
   */
  listAccountAddresses(
    stakeAddress: string,
    options: ListAccountAddressesOptions = {},
    call: CallOptions = {},
  ): Promise<types.AccountAddressPage> {
    return this.call(operations.listAccountAddresses, { stake_address: stakeAddress }, options, call);
  }

  /** Every item of `listAccountAddresses`, page by page. */
  iterateAccountAddresses(
    stakeAddress: string,
    options: Omit<ListAccountAddressesOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.AccountAddress, void, undefined> {
    return this.pages(operations.listAccountAddresses, { stake_address: stakeAddress }, options, call);
  }

  /**
   * List the unspent outputs of a stake account.
   *
   * With `asset`, only those that hold it.
   */
  listAccountUtxos(
    stakeAddress: string,
    options: ListAccountUtxosOptions = {},
    call: CallOptions = {},
  ): Promise<types.UnspentOutputPage> {
    return this.call(operations.listAccountUtxos, { stake_address: stakeAddress }, options, call);
  }

  /** Every item of `listAccountUtxos`, page by page. */
  iterateAccountUtxos(
    stakeAddress: string,
    options: Omit<ListAccountUtxosOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.UnspentOutput, void, undefined> {
    return this.pages(operations.listAccountUtxos, { stake_address: stakeAddress }, options, call);
  }

  /** List the assets in the unspent outputs of a stake account. */
  listAccountAssets(
    stakeAddress: string,
    options: ListAccountAssetsOptions = {},
    call: CallOptions = {},
  ): Promise<types.HoldingPage> {
    return this.call(operations.listAccountAssets, { stake_address: stakeAddress }, options, call);
  }

  /** Every item of `listAccountAssets`, page by page. */
  iterateAccountAssets(
    stakeAddress: string,
    options: Omit<ListAccountAssetsOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.Holding, void, undefined> {
    return this.pages(operations.listAccountAssets, { stake_address: stakeAddress }, options, call);
  }

  /**
   * List the transactions of a stake account.
   *
   * A transaction is listed if it spends from an address of the account or pays to one.
   */
  listAccountTransactionHistory(
    stakeAddress: string,
    options: ListAccountTransactionHistoryOptions = {},
    call: CallOptions = {},
  ): Promise<types.HistoryEntryPage> {
    return this.call(operations.listAccountTransactionHistory, { stake_address: stakeAddress }, options, call);
  }

  /** Every item of `listAccountTransactionHistory`, page by page. */
  iterateAccountTransactionHistory(
    stakeAddress: string,
    options: Omit<ListAccountTransactionHistoryOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.HistoryEntry, void, undefined> {
    return this.pages(operations.listAccountTransactionHistory, { stake_address: stakeAddress }, options, call);
  }

  /** List the transactions of a stake account with their inputs and outputs. */
  listAccountTransactions(
    stakeAddress: string,
    options: ListAccountTransactionsOptions = {},
    call: CallOptions = {},
  ): Promise<types.TransactionPage> {
    return this.call(operations.listAccountTransactions, { stake_address: stakeAddress }, options, call);
  }

  /** Every item of `listAccountTransactions`, page by page. */
  iterateAccountTransactions(
    stakeAddress: string,
    options: Omit<ListAccountTransactionsOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.Transaction, void, undefined> {
    return this.pages(operations.listAccountTransactions, { stake_address: stakeAddress }, options, call);
  }

  /** List the delegations of a stake account to pools, past ones included. */
  listAccountDelegations(
    stakeAddress: string,
    options: ListAccountDelegationsOptions = {},
    call: CallOptions = {},
  ): Promise<types.DelegationPage> {
    return this.call(operations.listAccountDelegations, { stake_address: stakeAddress }, options, call);
  }

  /** Every item of `listAccountDelegations`, page by page. */
  iterateAccountDelegations(
    stakeAddress: string,
    options: Omit<ListAccountDelegationsOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.Delegation, void, undefined> {
    return this.pages(operations.listAccountDelegations, { stake_address: stakeAddress }, options, call);
  }

  /** List the withdrawals of rewards from a stake account. */
  listAccountWithdrawals(
    stakeAddress: string,
    options: ListAccountWithdrawalsOptions = {},
    call: CallOptions = {},
  ): Promise<types.AccountWithdrawalPage> {
    return this.call(operations.listAccountWithdrawals, { stake_address: stakeAddress }, options, call);
  }

  /** Every item of `listAccountWithdrawals`, page by page. */
  iterateAccountWithdrawals(
    stakeAddress: string,
    options: Omit<ListAccountWithdrawalsOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.AccountWithdrawal, void, undefined> {
    return this.pages(operations.listAccountWithdrawals, { stake_address: stakeAddress }, options, call);
  }

  /**
   * Get an output, spent or not.
   *
   * The answer names the transaction that has spent it, if any.
   */
  getUtxo(txHash: string, index: number, call: CallOptions = {}): Promise<types.MadeOutputAnswer> {
    return this.call(operations.getUtxo, { tx_hash: txHash, index }, {}, call);
  }

  /** Get up to 100 addresses. */
  getAddresses(options: GetAddressesOptions, call: CallOptions = {}): Promise<types.AddressInfoBulk> {
    return this.call(operations.getAddresses, {}, options, call);
  }

  /** Get up to 100 stake accounts. */
  getAccounts(options: GetAccountsOptions, call: CallOptions = {}): Promise<types.AccountBulk> {
    return this.call(operations.getAccounts, {}, options, call);
  }

  /** Get up to 100 transactions by their hashes. */
  getTransactions(
    options: GetTransactionsOptions,
    call: CallOptions = {},
  ): Promise<types.FullTransactionBulk> {
    return this.call(operations.getTransactions, {}, options, call);
  }

  /**
   * Get up to 100 assets.
   *
   * Their metadata is that on the chain (CIP-68 and CIP-25). The registry is not asked.
   */
  getAssets(options: GetAssetsOptions, call: CallOptions = {}): Promise<types.AssetBulk> {
    return this.call(operations.getAssets, {}, options, call);
  }

  /**
   * Get up to 100 outputs, spent or not.
   *
   * An id is the hash of the transaction, `#` and the index of the output there.
   */
  getUtxos(options: GetUtxosOptions, call: CallOptions = {}): Promise<types.MadeOutputBulk> {
    return this.call(operations.getUtxos, {}, options, call);
  }

  /** Get a stake pool. */
  getPool(poolId: string, call: CallOptions = {}): Promise<types.StakePoolAnswer> {
    return this.call(operations.getPool, { poolId }, {}, call);
  }

  /** List the delegators of a stake pool by stake, largest first. */
  listPoolDelegators(
    poolId: string,
    options: ListPoolDelegatorsOptions = {},
    call: CallOptions = {},
  ): Promise<types.DelegatorsPage> {
    return this.call(operations.listPoolDelegators, { poolId }, options, call);
  }

  /** Every item of `listPoolDelegators`, page by page. */
  iteratePoolDelegators(
    poolId: string,
    options: Omit<ListPoolDelegatorsOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.Delegator, void, undefined> {
    return this.pages(operations.listPoolDelegators, { poolId }, options, call);
  }

  /** Get a block by hash or number, or the latest one. */
  getBlock(block: string, call: CallOptions = {}): Promise<types.BlockAnswer> {
    return this.call(operations.getBlock, { block }, {}, call);
  }

  /** List the transactions of a block. */
  listBlockTransactions(
    block: string,
    options: ListBlockTransactionsOptions = {},
    call: CallOptions = {},
  ): Promise<types.BlockTransactionPage> {
    return this.call(operations.listBlockTransactions, { block }, options, call);
  }

  /** Every item of `listBlockTransactions`, page by page. */
  iterateBlockTransactions(
    block: string,
    options: Omit<ListBlockTransactionsOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.BlockTransaction, void, undefined> {
    return this.pages(operations.listBlockTransactions, { block }, options, call);
  }

  /** Get an epoch by number, or the latest one. */
  getEpoch(epoch: string, call: CallOptions = {}): Promise<types.EpochAnswer> {
    return this.call(operations.getEpoch, { epoch }, {}, call);
  }

  /**
   * Get the protocol parameters of an epoch.
   *
   * They are known of each epoch in which the index followed the node's tip.
   */
  getEpochParameters(epoch: string, call: CallOptions = {}): Promise<types.EpochParametersAnswer> {
    return this.call(operations.getEpochParameters, { epoch }, {}, call);
  }

  /** Get the state of the network: tip, epoch, supply and stake. */
  getNetwork(call: CallOptions = {}): Promise<types.NetworkSummaryAnswer> {
    return this.call(operations.getNetwork, {}, {}, call);
  }

  /** Get the genesis configurations of the network. */
  getGenesis(call: CallOptions = {}): Promise<types.GenesisAnswer> {
    return this.call(operations.getGenesis, {}, {}, call);
  }

  /**
   * Read the network, limits, expiry and restrictions of the API key of this request.
   *
   * The request counts, as any other. Every key may make it, whatever its scopes.
   */
  getOwnKey(call: CallOptions = {}): Promise<types.OwnKeyAnswer> {
    return this.call(operations.getOwnKey, {}, {}, call);
  }

  /**
   * Create a user account. It belongs to the admin key that creates it, and starts active.
   *
   * Requires the permission `manage_users`.
   */
  createUser(options: CreateUserOptions, call: CallOptions = {}): Promise<types.UserAccountConfirmation> {
    return this.call(operations.createUser, {}, options, call);
  }

  /**
   * List the caller's user accounts that match the filters, newest first.
   *
   * Requires the permission `manage_users`.
   */
  listUsers(options: ListUsersOptions = {}, call: CallOptions = {}): Promise<types.UserAccountPage> {
    return this.call(operations.listUsers, {}, options, call);
  }

  /** Every item of `listUsers`, page by page. */
  iterateUsers(
    options: Omit<ListUsersOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.UserAccount, void, undefined> {
    return this.pages(operations.listUsers, {}, options, call);
  }

  /**
   * Read one user account.
   *
   * Requires the permission `manage_users`.
   */
  getUser(userId: string, call: CallOptions = {}): Promise<types.UserAccountAnswer> {
    return this.call(operations.getUser, { id: userId }, {}, call);
  }

  /**
   * Change fields of a user account.
   *
   * Omitted fields stay unchanged, null clears an optional field, and `metadata` is replaced as a whole. An empty
   * body changes nothing. Requires the permission `manage_users`.
   */
  updateUser(
    userId: string,
    options: UpdateUserOptions = {},
    call: CallOptions = {},
  ): Promise<types.UserAccountConfirmation> {
    return this.call(operations.updateUser, { id: userId }, options, call);
  }

  /**
   * Delete a user account permanently: end its API keys and erase what is personal.
   *
   * Names, references, email, billing plan, descriptions, metadata and IP networks are erased, including in the
   * audit log. Usage remains, under the ids of the account and its credentials. Requires the permission
   * `manage_users`.
   */
  deleteUser(userId: string, call: CallOptions = {}): Promise<types.DeletedUserConfirmation> {
    return this.call(operations.deleteUser, { id: userId }, {}, call);
  }

  /**
   * Read one user account by the partner's own reference.
   *
   * Requires the permission `manage_users`.
   */
  getUserByExternalId(externalId: string, call: CallOptions = {}): Promise<types.UserAccountAnswer> {
    return this.call(operations.getUserByExternalId, { external_id: externalId }, {}, call);
  }

  /**
   * Suspend a user account: its API keys are refused from now on. A repeated call changes nothing.
   *
   * Requires the permission `manage_users`.
   */
  suspendUser(userId: string, call: CallOptions = {}): Promise<types.UserAccountConfirmation> {
    return this.call(operations.suspendUser, { id: userId }, {}, call);
  }

  /**
   * Reactivate a user account and its API keys. A repeated call changes nothing.
   *
   * Requires the permission `manage_users`.
   */
  reactivateUser(userId: string, call: CallOptions = {}): Promise<types.UserAccountConfirmation> {
    return this.call(operations.reactivateUser, { id: userId }, {}, call);
  }

  /**
   * Read the usage of one user account. The default period is the last 30 days.
   *
   * Requires the permission `view_usage`.
   */
  getUserUsage(
    userId: string,
    options: GetUserUsageOptions = {},
    call: CallOptions = {},
  ): Promise<types.UserUsageAnswer> {
    return this.call(operations.getUserUsage, { id: userId }, options, call);
  }

  /**
   * List the usage of the caller's active accounts, most requests first. The default period is the last 30 days.
   *
   * Requires the permission `view_usage`.
   */
  listUsageByUser(options: ListUsageByUserOptions = {}, call: CallOptions = {}): Promise<types.UserUsagePage> {
    return this.call(operations.listUsageByUser, {}, options, call);
  }

  /** Every item of `listUsageByUser`, page by page. */
  iterateUsageByUser(
    options: Omit<ListUsageByUserOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.UserUsage, void, undefined> {
    return this.pages(operations.listUsageByUser, {}, options, call);
  }

  /**
   * Issue an API key to a user account.
   *
   * Only this answer contains the full key; the service stores its SHA-256. The key of a suspended account works
   * once the account is active again. Requires the permission `manage_credentials`.
   */
  createCredential(
    options: CreateCredentialOptions,
    call: CallOptions = {},
  ): Promise<types.IssuedCredentialConfirmation> {
    return this.call(operations.createCredential, {}, options, call);
  }

  /**
   * List the credentials of the caller's accounts that match the filters, newest first.
   *
   * Requires the permission `manage_credentials`.
   */
  listCredentials(
    options: ListCredentialsOptions = {},
    call: CallOptions = {},
  ): Promise<types.CredentialPage> {
    return this.call(operations.listCredentials, {}, options, call);
  }

  /** Every item of `listCredentials`, page by page. */
  iterateCredentials(
    options: Omit<ListCredentialsOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.Credential, void, undefined> {
    return this.pages(operations.listCredentials, {}, options, call);
  }

  /**
   * Read one credential, revoked or not.
   *
   * Requires the permission `manage_credentials`.
   */
  getCredential(credentialId: string, call: CallOptions = {}): Promise<types.CredentialAnswer> {
    return this.call(operations.getCredential, { id: credentialId }, {}, call);
  }

  /**
   * Change the name or the description of a credential that is not revoked.
   *
   * Requires the permission `manage_credentials`.
   */
  updateCredential(
    credentialId: string,
    options: UpdateCredentialOptions = {},
    call: CallOptions = {},
  ): Promise<types.CredentialConfirmation> {
    return this.call(operations.updateCredential, { id: credentialId }, options, call);
  }

  /**
   * Revoke a credential permanently. Its API key is refused from the next request on; the record remains.
   *
   * Requires the permission `manage_credentials`.
   */
  revokeCredential(
    credentialId: string,
    call: CallOptions = {},
  ): Promise<types.RevokedCredentialConfirmation> {
    return this.call(operations.revokeCredential, { id: credentialId }, {}, call);
  }

  /**
   * Replace the API key of a credential with a new one. The former key remains valid during the overlap.
   *
   * Only this answer contains the new key. Both keys count for the same credential and share its limits; usage
   * continues under the same id, and restrictions stay. Revocation ends both. Requires the permission
   * `manage_credentials`.
   */
  rotateCredential(
    credentialId: string,
    options: RotateCredentialOptions,
    call: CallOptions = {},
  ): Promise<types.RotatedCredentialConfirmation> {
    return this.call(operations.rotateCredential, { id: credentialId }, options, call);
  }

  /**
   * Read the limits of a credential, revoked or not.
   *
   * Requires the permission `manage_credentials`.
   */
  getCredentialLimits(credentialId: string, call: CallOptions = {}): Promise<types.LimitsAnswer> {
    return this.call(operations.getCredentialLimits, { id: credentialId }, {}, call);
  }

  /**
   * Change the limits of an unrevoked credential, effective from its very next request.
   *
   * Omitted fields stay unchanged; null removes the expiry or the quota. A new quota includes the requests that
   * its day or month has already seen. Requires the permission `manage_credentials`.
   */
  updateCredentialLimits(
    credentialId: string,
    options: UpdateCredentialLimitsOptions = {},
    call: CallOptions = {},
  ): Promise<types.LimitsConfirmation> {
    return this.call(operations.updateCredentialLimits, { id: credentialId }, options, call);
  }

  /**
   * Read the restrictions of a credential, revoked or not.
   *
   * Requires the permission `manage_credentials`.
   */
  getCredentialRestrictions(
    credentialId: string,
    call: CallOptions = {},
  ): Promise<types.RestrictionsRecordAnswer> {
    return this.call(operations.getCredentialRestrictions, { id: credentialId }, {}, call);
  }

  /**
   * Restrict an unrevoked credential to IP networks, scopes, or both, effective from its very next request.
   *
   * Omitted fields stay unchanged; an empty array or null removes a restriction. Each chain endpoint belongs to
   * one scope; `/v1/key` may be called with any. The scope `submit` must be named: a key without scopes may call
   * everything else. Requires the permission `manage_credentials`.
   */
  updateCredentialRestrictions(
    credentialId: string,
    options: UpdateCredentialRestrictionsOptions = {},
    call: CallOptions = {},
  ): Promise<types.RestrictionsRecordConfirmation> {
    return this.call(operations.updateCredentialRestrictions, { id: credentialId }, options, call);
  }

  /**
   * List the usage of every credential of the caller, most requests first.
   *
   * The list includes revoked and unused credentials. Without dates, all requests count. Requires the permission
   * `view_usage`.
   */
  listUsageByCredential(
    options: ListUsageByCredentialOptions = {},
    call: CallOptions = {},
  ): Promise<types.ListedUsagePage> {
    return this.call(operations.listUsageByCredential, {}, options, call);
  }

  /** Every item of `listUsageByCredential`, page by page. */
  iterateUsageByCredential(
    options: Omit<ListUsageByCredentialOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.ListedUsage, void, undefined> {
    return this.pages(operations.listUsageByCredential, {}, options, call);
  }

  /**
   * Read the usage of one credential, in total and by day.
   *
   * The default period is from the credential's creation to now. Requires the permission `view_usage`.
   */
  getCredentialUsage(
    credentialId: string,
    options: GetCredentialUsageOptions = {},
    call: CallOptions = {},
  ): Promise<types.CredentialUsageDetailAnswer> {
    return this.call(operations.getCredentialUsage, { id: credentialId }, options, call);
  }

  /**
   * List the usage of one credential by period, newest first, then by endpoint and status.
   *
   * Periods without requests are left out. A request appears within five seconds. Whole hours are counted: the
   * first and the last hour of the period are included completely. The default period is the last 30 days.
   * Requires the permission `view_usage`.
   */
  listCredentialUsageBreakdown(
    credentialId: string,
    options: ListCredentialUsageBreakdownOptions = {},
    call: CallOptions = {},
  ): Promise<types.UsagePartPage> {
    return this.call(operations.listCredentialUsageBreakdown, { id: credentialId }, options, call);
  }

  /** Every item of `listCredentialUsageBreakdown`, page by page. */
  iterateCredentialUsageBreakdown(
    credentialId: string,
    options: Omit<ListCredentialUsageBreakdownOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.UsagePart, void, undefined> {
    return this.pages(operations.listCredentialUsageBreakdown, { id: credentialId }, options, call);
  }

  /**
   * List the usage of all credentials of an account by period, newest first, then by endpoint and status.
   *
   * Periods without requests are left out. A request appears within five seconds. Whole hours are counted: the
   * first and the last hour of the period are included completely. The default period is the last 30 days.
   * Requires the permission `view_usage`.
   */
  listUserUsageBreakdown(
    userId: string,
    options: ListUserUsageBreakdownOptions = {},
    call: CallOptions = {},
  ): Promise<types.UsagePartPage> {
    return this.call(operations.listUserUsageBreakdown, { id: userId }, options, call);
  }

  /** Every item of `listUserUsageBreakdown`, page by page. */
  iterateUserUsageBreakdown(
    userId: string,
    options: Omit<ListUserUsageBreakdownOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.UsagePart, void, undefined> {
    return this.pages(operations.listUserUsageBreakdown, { id: userId }, options, call);
  }

  /**
   * Download the usage of every credential by period, endpoint and status, as CSV or as JSON lines.
   *
   * Periods without requests are left out. A request appears within five seconds. Whole hours are counted: the
   * first and the last hour of the period are included completely. The default period is the last 30 days. The
   * answer is a stream; if it ends without its last chunk, it is incomplete. Requires the permission `view_usage`.
   */
  exportUsage(options: ExportUsageOptions = {}, call: CallOptions = {}): Promise<string> {
    return this.call(operations.exportUsage, {}, options, call);
  }

  /** The lines of `exportUsage` as they arrive, each with its line end. */
  streamUsage(
    options: ExportUsageOptions = {},
    call: CallOptions = {},
  ): AsyncGenerator<string, void, undefined> {
    return this.lines(operations.exportUsage, {}, options, call);
  }

  /**
   * List audit log entries, newest first.
   *
   * A partner sees the actions of its own admin key; the bootstrap key sees all. Requires the permission
   * `view_audit_logs`.
   */
  listAuditLogs(options: ListAuditLogsOptions = {}, call: CallOptions = {}): Promise<types.AuditEntryPage> {
    return this.call(operations.listAuditLogs, {}, options, call);
  }

  /** Every item of `listAuditLogs`, page by page. */
  iterateAuditLogs(
    options: Omit<ListAuditLogsOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.AuditEntry, void, undefined> {
    return this.pages(operations.listAuditLogs, {}, options, call);
  }

  /**
   * Issue an admin key to a partner. Only this answer contains the full key.
   *
   * Requires the bootstrap key.
   */
  createAdminKey(
    options: CreateAdminKeyOptions,
    call: CallOptions = {},
  ): Promise<types.IssuedAdminKeyConfirmation> {
    return this.call(operations.createAdminKey, {}, options, call);
  }

  /**
   * List all admin keys, including the bootstrap key and revoked ones, newest first.
   *
   * Requires the bootstrap key.
   */
  listAdminKeys(
    options: ListAdminKeysOptions = {},
    call: CallOptions = {},
  ): Promise<types.AdminKeyRecordPage> {
    return this.call(operations.listAdminKeys, {}, options, call);
  }

  /** Every item of `listAdminKeys`, page by page. */
  iterateAdminKeys(
    options: Omit<ListAdminKeysOptions, "offset"> = {},
    call: CallOptions = {},
  ): AsyncGenerator<types.AdminKeyRecord, void, undefined> {
    return this.pages(operations.listAdminKeys, {}, options, call);
  }

  /**
   * Revoke an admin key permanently. Its admin access ends at once; the API keys of its accounts continue to work.
   *
   * Requires the bootstrap key.
   */
  revokeAdminKey(adminKeyId: string, call: CallOptions = {}): Promise<types.AdminKeyRecordConfirmation> {
    return this.call(operations.revokeAdminKey, { id: adminKeyId }, {}, call);
  }

  /** Show a page with links, for people who open this API in a browser. */
  getHome(call: CallOptions = {}): Promise<string> {
    return this.call(operations.getHome, {}, {}, call);
  }

  /** Check that the process is alive. */
  getHealth(call: CallOptions = {}): Promise<types.AliveAnswer> {
    return this.call(operations.getHealth, {}, {}, call);
  }

  /**
   * Check whether chain requests can be answered and counted; if not, the answer is 503 with the reasons.
   *
   * With status 200, `reasons` lists the problems that do not affect requests; if there are any, `status` is
   * `degraded`. An answer is up to a second old.
   */
  getReadiness(call: CallOptions = {}): Promise<types.ReadyAnswer> {
    return this.call(operations.getReadiness, {}, {}, call);
  }

  /**
   * Check whether chain requests of one network are answered from a recent block, and counted; if not, 503.
   *
   * The last block may be READY_LAG_S old, 300 seconds unless configured. An answer is up to a second old.
   */
  getNetworkReadiness(network: string, call: CallOptions = {}): Promise<types.NetworkReadyAnswer> {
    return this.call(operations.getNetworkReadiness, { network }, {}, call);
  }

  /** Get the state of each network and of usage. An answer is up to a second old. */
  getStatus(call: CallOptions = {}): Promise<types.StatusAnswer> {
    return this.call(operations.getStatus, {}, {}, call);
  }

  /** Show a page with the state of the service, which follows /v1/status. */
  getStatusPage(call: CallOptions = {}): Promise<string> {
    return this.call(operations.getStatusPage, {}, {}, call);
  }

  /** Show a page for partners, who administer accounts and API keys there with their admin key. */
  getConsolePage(call: CallOptions = {}): Promise<string> {
    return this.call(operations.getConsolePage, {}, {}, call);
  }

  /** Show the metrics of all processes that share this port, as Prometheus text. */
  getMetrics(call: CallOptions = {}): Promise<string> {
    return this.call(operations.getMetrics, {}, {}, call);
  }

  /** Get this OpenAPI document. */
  getOpenapiDocument(call: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.call(operations.getOpenapiDocument, {}, {}, call);
  }

  /** Show the interactive documentation of this API. */
  getDocs(call: CallOptions = {}): Promise<string> {
    return this.call(operations.getDocs, {}, {}, call);
  }

  /** Get a file of a page. */
  getDocsFile(file: string, call: CallOptions = {}): Promise<string> {
    return this.call(operations.getDocsFile, { file }, {}, call);
  }
}
