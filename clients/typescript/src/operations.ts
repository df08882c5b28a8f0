// The table of operations. Made by `python -m clients.generate` from the table of routes; do not edit.

import type { Operation } from "./http.js";

export const listTransactions: Operation = {
  method: "GET",
  path: "/v1/tx/address/{address}",
  key: "apiKey",
  quantities: { data: { fee: true, inputs: { value: { lovelace: true, assets: true } }, outputs: { value: { lovelace: true, assets: true } } } },
};

export const listTransactionHistory: Operation = {
  method: "GET",
  path: "/v1/tx/history/{address}",
  key: "apiKey",
};

export const getTransaction: Operation = {
  method: "GET",
  path: "/v1/tx/hash/{hash}",
  key: "apiKey",
  quantities: { data: { fee: true, inputs: { value: { lovelace: true, assets: true } }, outputs: { value: { lovelace: true, assets: true } }, mint: true, withdrawals: { lovelace: true }, certificates: { pool: { pledge: true, fixed_cost: true }, deposit: true }, invalid_before: true, invalid_hereafter: true } },
};

export const evaluateTransaction: Operation = {
  method: "POST",
  path: "/v1/tx/evaluate",
  key: "apiKey",
  idempotent: true,
  quantities: { data: { budgets: { memory: true, cpu: true } } },
};

export const submitTransaction: Operation = {
  method: "POST",
  path: "/v1/tx/submit",
  key: "apiKey",
  idempotent: true,
  quantities: { data: { invalid_hereafter: true } },
};

export const getSubmittedTransaction: Operation = {
  method: "GET",
  path: "/v1/tx/submitted/{hash}",
  key: "apiKey",
  quantities: { data: { invalid_hereafter: true } },
};

export const resubmitTransaction: Operation = {
  method: "POST",
  path: "/v1/tx/submitted/{hash}/resubmit",
  key: "apiKey",
  idempotent: true,
  quantities: { data: { invalid_hereafter: true } },
};

export const getScript: Operation = {
  method: "GET",
  path: "/v1/scripts/{scriptHash}",
  key: "apiKey",
};

export const getDatum: Operation = {
  method: "GET",
  path: "/v1/datums/{datumHash}",
  key: "apiKey",
};

export const getAsset: Operation = {
  method: "GET",
  path: "/v1/assets/{asset}",
  key: "apiKey",
  quantities: { data: { total_supply: true } },
};

export const listPolicyAssets: Operation = {
  method: "GET",
  path: "/v1/assets/policy/{policyId}",
  key: "apiKey",
  quantities: { data: { total_supply: true } },
};

export const listPolicyHolders: Operation = {
  method: "GET",
  path: "/v1/assets/policy/{policyId}/holders",
  key: "apiKey",
  quantities: { data: { quantity: true } },
};

export const listAssetHolders: Operation = {
  method: "GET",
  path: "/v1/assets/{asset}/holders",
  key: "apiKey",
  quantities: { data: { quantity: true } },
};

export const listAssetTransactions: Operation = {
  method: "GET",
  path: "/v1/assets/{asset}/transactions",
  key: "apiKey",
  quantities: { data: { quantity: true } },
};

export const listAssetMints: Operation = {
  method: "GET",
  path: "/v1/assets/{asset}/mints",
  key: "apiKey",
  quantities: { data: { quantity: true } },
};

export const listPolicyAccountHolders: Operation = {
  method: "GET",
  path: "/v1/assets/policy/{policyId}/holders/accounts",
  key: "apiKey",
  quantities: { data: { quantity: true } },
};

export const listAssetAccountHolders: Operation = {
  method: "GET",
  path: "/v1/assets/{asset}/holders/accounts",
  key: "apiKey",
  quantities: { data: { quantity: true } },
};

export const exportAssetHolders: Operation = {
  method: "GET",
  path: "/v1/assets/{asset}/holders.csv",
  key: "apiKey",
  answer: "text",
};

export const exportAssetAccountHolders: Operation = {
  method: "GET",
  path: "/v1/assets/{asset}/holders/accounts.csv",
  key: "apiKey",
  answer: "text",
};

export const exportPolicyHolders: Operation = {
  method: "GET",
  path: "/v1/assets/policy/{policyId}/holders.csv",
  key: "apiKey",
  answer: "text",
};

export const exportPolicyAccountHolders: Operation = {
  method: "GET",
  path: "/v1/assets/policy/{policyId}/holders/accounts.csv",
  key: "apiKey",
  answer: "text",
};

export const getAddress: Operation = {
  method: "GET",
  path: "/v1/addresses/{address}",
  key: "apiKey",
  quantities: { data: { lovelace: true } },
};

export const listAddressUtxos: Operation = {
  method: "GET",
  path: "/v1/addresses/{address}/utxos",
  key: "apiKey",
  quantities: { data: { value: { lovelace: true, assets: true } } },
};

export const listAddressAssets: Operation = {
  method: "GET",
  path: "/v1/addresses/{address}/assets",
  key: "apiKey",
  quantities: { data: { quantity: true } },
};

export const getAccount: Operation = {
  method: "GET",
  path: "/v1/accounts/{stake_address}",
  key: "apiKey",
  quantities: { data: { rewards: true, lovelace: true } },
};

export const listAccountAddresses: Operation = {
  method: "GET",
  path: "/v1/accounts/{stake_address}/addresses",
  key: "apiKey",
};

export const listAccountUtxos: Operation = {
  method: "GET",
  path: "/v1/accounts/{stake_address}/utxos",
  key: "apiKey",
  quantities: { data: { value: { lovelace: true, assets: true } } },
};

export const listAccountAssets: Operation = {
  method: "GET",
  path: "/v1/accounts/{stake_address}/assets",
  key: "apiKey",
  quantities: { data: { quantity: true } },
};

export const listAccountTransactionHistory: Operation = {
  method: "GET",
  path: "/v1/accounts/{stake_address}/transactions",
  key: "apiKey",
};

export const listAccountTransactions: Operation = {
  method: "GET",
  path: "/v1/accounts/{stake_address}/transactions/detailed",
  key: "apiKey",
  quantities: { data: { fee: true, inputs: { value: { lovelace: true, assets: true } }, outputs: { value: { lovelace: true, assets: true } } } },
};

export const listAccountDelegations: Operation = {
  method: "GET",
  path: "/v1/accounts/{stake_address}/delegations",
  key: "apiKey",
};

export const listAccountWithdrawals: Operation = {
  method: "GET",
  path: "/v1/accounts/{stake_address}/withdrawals",
  key: "apiKey",
  quantities: { data: { lovelace: true } },
};

export const getUtxo: Operation = {
  method: "GET",
  path: "/v1/utxos/{tx_hash}/{index}",
  key: "apiKey",
  quantities: { data: { value: { lovelace: true, assets: true } } },
};

export const getAddresses: Operation = {
  method: "POST",
  path: "/v1/bulk/addresses",
  key: "apiKey",
  idempotent: true,
  quantities: { data: { lovelace: true } },
};

export const getAccounts: Operation = {
  method: "POST",
  path: "/v1/bulk/accounts",
  key: "apiKey",
  idempotent: true,
  quantities: { data: { rewards: true, lovelace: true } },
};

export const getTransactions: Operation = {
  method: "POST",
  path: "/v1/bulk/transactions",
  key: "apiKey",
  idempotent: true,
  quantities: { data: { fee: true, inputs: { value: { lovelace: true, assets: true } }, outputs: { value: { lovelace: true, assets: true } }, mint: true, withdrawals: { lovelace: true }, certificates: { pool: { pledge: true, fixed_cost: true }, deposit: true }, invalid_before: true, invalid_hereafter: true } },
};

export const getAssets: Operation = {
  method: "POST",
  path: "/v1/bulk/assets",
  key: "apiKey",
  idempotent: true,
  quantities: { data: { total_supply: true } },
};

export const getUtxos: Operation = {
  method: "POST",
  path: "/v1/bulk/utxos",
  key: "apiKey",
  idempotent: true,
  quantities: { data: { value: { lovelace: true, assets: true } } },
};

export const getPool: Operation = {
  method: "GET",
  path: "/v1/pools/{poolId}",
  key: "apiKey",
  quantities: { data: { pledge: true, fixed_cost: true, active_stake: true, live_stake: true } },
};

export const listPoolDelegators: Operation = {
  method: "GET",
  path: "/v1/pools/{poolId}/delegators/list",
  key: "apiKey",
  quantities: { data: { delegators: { amount: true } } },
  inside: "delegators",
};

export const getBlock: Operation = {
  method: "GET",
  path: "/v1/blocks/{block}",
  key: "apiKey",
  quantities: { data: { fees: true, output: true } },
};

export const listBlockTransactions: Operation = {
  method: "GET",
  path: "/v1/blocks/{block}/transactions",
  key: "apiKey",
  quantities: { data: { fee: true } },
};

export const getEpoch: Operation = {
  method: "GET",
  path: "/v1/epochs/{epoch}",
  key: "apiKey",
  quantities: { data: { fees: true, output: true } },
};

export const getEpochParameters: Operation = {
  method: "GET",
  path: "/v1/epochs/{epoch}/parameters",
  key: "apiKey",
};

export const getNetwork: Operation = {
  method: "GET",
  path: "/v1/network",
  key: "apiKey",
  quantities: { data: { supply: { max: true, total: true, circulating: true, treasury: true, reserves: true }, stake: { live: true, active: true } } },
};

export const getGenesis: Operation = {
  method: "GET",
  path: "/v1/genesis",
  key: "apiKey",
  quantities: { data: { max_lovelace_supply: true } },
};

export const getOwnKey: Operation = {
  method: "GET",
  path: "/v1/key",
  key: "apiKey",
};

export const createUser: Operation = {
  method: "POST",
  path: "/v1/admin/users",
  key: "adminKey",
  idempotent: true,
};

export const listUsers: Operation = {
  method: "GET",
  path: "/v1/admin/users",
  key: "adminKey",
};

export const getUser: Operation = {
  method: "GET",
  path: "/v1/admin/users/{id}",
  key: "adminKey",
};

export const updateUser: Operation = {
  method: "PATCH",
  path: "/v1/admin/users/{id}",
  key: "adminKey",
};

export const deleteUser: Operation = {
  method: "DELETE",
  path: "/v1/admin/users/{id}",
  key: "adminKey",
};

export const getUserByExternalId: Operation = {
  method: "GET",
  path: "/v1/admin/users/by-external-id/{external_id}",
  key: "adminKey",
};

export const suspendUser: Operation = {
  method: "POST",
  path: "/v1/admin/users/{id}/suspend",
  key: "adminKey",
  idempotent: true,
};

export const reactivateUser: Operation = {
  method: "POST",
  path: "/v1/admin/users/{id}/reactivate",
  key: "adminKey",
  idempotent: true,
};

export const getUserUsage: Operation = {
  method: "GET",
  path: "/v1/admin/users/{id}/usage",
  key: "adminKey",
};

export const listUsageByUser: Operation = {
  method: "GET",
  path: "/v1/admin/users/usage/summary",
  key: "adminKey",
};

export const createCredential: Operation = {
  method: "POST",
  path: "/v1/admin/credentials",
  key: "adminKey",
  idempotent: true,
};

export const listCredentials: Operation = {
  method: "GET",
  path: "/v1/admin/credentials",
  key: "adminKey",
};

export const getCredential: Operation = {
  method: "GET",
  path: "/v1/admin/credentials/{id}",
  key: "adminKey",
};

export const updateCredential: Operation = {
  method: "PATCH",
  path: "/v1/admin/credentials/{id}",
  key: "adminKey",
};

export const revokeCredential: Operation = {
  method: "DELETE",
  path: "/v1/admin/credentials/{id}",
  key: "adminKey",
};

export const rotateCredential: Operation = {
  method: "POST",
  path: "/v1/admin/credentials/{id}/rotate",
  key: "adminKey",
  idempotent: true,
};

export const getCredentialLimits: Operation = {
  method: "GET",
  path: "/v1/admin/credentials/{id}/limits",
  key: "adminKey",
};

export const updateCredentialLimits: Operation = {
  method: "PUT",
  path: "/v1/admin/credentials/{id}/limits",
  key: "adminKey",
};

export const getCredentialRestrictions: Operation = {
  method: "GET",
  path: "/v1/admin/credentials/{id}/restrictions",
  key: "adminKey",
};

export const updateCredentialRestrictions: Operation = {
  method: "PUT",
  path: "/v1/admin/credentials/{id}/restrictions",
  key: "adminKey",
};

export const listUsageByCredential: Operation = {
  method: "GET",
  path: "/v1/admin/usage",
  key: "adminKey",
};

export const getCredentialUsage: Operation = {
  method: "GET",
  path: "/v1/admin/usage/{id}",
  key: "adminKey",
};

export const listCredentialUsageBreakdown: Operation = {
  method: "GET",
  path: "/v1/admin/usage/{id}/breakdown",
  key: "adminKey",
};

export const listUserUsageBreakdown: Operation = {
  method: "GET",
  path: "/v1/admin/users/{id}/usage/breakdown",
  key: "adminKey",
};

export const exportUsage: Operation = {
  method: "GET",
  path: "/v1/admin/usage/export",
  key: "adminKey",
  answer: "text",
};

export const listAuditLogs: Operation = {
  method: "GET",
  path: "/v1/admin/audit-logs",
  key: "adminKey",
};

export const createAdminKey: Operation = {
  method: "POST",
  path: "/v1/admin/admin-keys",
  key: "adminKey",
  idempotent: true,
};

export const listAdminKeys: Operation = {
  method: "GET",
  path: "/v1/admin/admin-keys",
  key: "adminKey",
};

export const revokeAdminKey: Operation = {
  method: "DELETE",
  path: "/v1/admin/admin-keys/{id}",
  key: "adminKey",
};

export const getHome: Operation = {
  method: "GET",
  path: "/",
  key: "none",
  answer: "text",
};

export const getHealth: Operation = {
  method: "GET",
  path: "/health",
  key: "none",
};

export const getReadiness: Operation = {
  method: "GET",
  path: "/ready",
  key: "none",
};

export const getNetworkReadiness: Operation = {
  method: "GET",
  path: "/ready/{network}",
  key: "none",
};

export const getStatus: Operation = {
  method: "GET",
  path: "/v1/status",
  key: "none",
};

export const getStatusPage: Operation = {
  method: "GET",
  path: "/status",
  key: "none",
  answer: "text",
};

export const getConsolePage: Operation = {
  method: "GET",
  path: "/console",
  key: "none",
  answer: "text",
};

export const getMetrics: Operation = {
  method: "GET",
  path: "/metrics",
  key: "none",
  answer: "text",
};

export const getOpenapiDocument: Operation = {
  method: "GET",
  path: "/openapi.json",
  key: "none",
};

export const getDocs: Operation = {
  method: "GET",
  path: "/docs",
  key: "none",
  answer: "text",
};

export const getDocsFile: Operation = {
  method: "GET",
  path: "/docs/{file}",
  key: "none",
  answer: "text",
};
