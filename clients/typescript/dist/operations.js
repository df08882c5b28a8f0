// The table of operations. Made by `python -m clients.generate` from the table of routes; do not edit.
export const listTransactions = {
    method: "GET",
    path: "/v1/tx/address/{address}",
    key: "apiKey",
    quantities: { data: { fee: true, inputs: { value: { lovelace: true, assets: true } }, outputs: { value: { lovelace: true, assets: true } } } },
};
export const listTransactionHistory = {
    method: "GET",
    path: "/v1/tx/history/{address}",
    key: "apiKey",
};
export const getTransaction = {
    method: "GET",
    path: "/v1/tx/hash/{hash}",
    key: "apiKey",
    quantities: { data: { fee: true, inputs: { value: { lovelace: true, assets: true } }, outputs: { value: { lovelace: true, assets: true } }, mint: true, withdrawals: { lovelace: true }, invalid_before: true, invalid_hereafter: true } },
};
export const getAsset = {
    method: "GET",
    path: "/v1/assets/{asset}",
    key: "apiKey",
    quantities: { data: { total_supply: true } },
};
export const listPolicyAssets = {
    method: "GET",
    path: "/v1/assets/policy/{policyId}",
    key: "apiKey",
    quantities: { data: { total_supply: true } },
};
export const listPolicyHolders = {
    method: "GET",
    path: "/v1/assets/policy/{policyId}/holders",
    key: "apiKey",
    quantities: { data: { quantity: true } },
};
export const listAssetHolders = {
    method: "GET",
    path: "/v1/assets/{asset}/holders",
    key: "apiKey",
    quantities: { data: { quantity: true } },
};
export const listAssetTransactions = {
    method: "GET",
    path: "/v1/assets/{asset}/transactions",
    key: "apiKey",
    quantities: { data: { quantity: true } },
};
export const listAssetMints = {
    method: "GET",
    path: "/v1/assets/{asset}/mints",
    key: "apiKey",
    quantities: { data: { quantity: true } },
};
export const getPool = {
    method: "GET",
    path: "/v1/pools/{poolId}",
    key: "apiKey",
    quantities: { data: { pledge: true, fixed_cost: true, active_stake: true, live_stake: true } },
};
export const listPoolDelegators = {
    method: "GET",
    path: "/v1/pools/{poolId}/delegators/list",
    key: "apiKey",
    quantities: { data: { delegators: { amount: true } } },
    inside: "delegators",
};
export const getOwnKey = {
    method: "GET",
    path: "/v1/key",
    key: "apiKey",
};
export const createUser = {
    method: "POST",
    path: "/v1/admin/users",
    key: "adminKey",
};
export const listUsers = {
    method: "GET",
    path: "/v1/admin/users",
    key: "adminKey",
};
export const getUser = {
    method: "GET",
    path: "/v1/admin/users/{id}",
    key: "adminKey",
};
export const updateUser = {
    method: "PATCH",
    path: "/v1/admin/users/{id}",
    key: "adminKey",
};
export const deleteUser = {
    method: "DELETE",
    path: "/v1/admin/users/{id}",
    key: "adminKey",
};
export const getUserByExternalId = {
    method: "GET",
    path: "/v1/admin/users/by-external-id/{external_id}",
    key: "adminKey",
};
export const suspendUser = {
    method: "POST",
    path: "/v1/admin/users/{id}/suspend",
    key: "adminKey",
};
export const reactivateUser = {
    method: "POST",
    path: "/v1/admin/users/{id}/reactivate",
    key: "adminKey",
};
export const getUserUsage = {
    method: "GET",
    path: "/v1/admin/users/{id}/usage",
    key: "adminKey",
};
export const listUsageByUser = {
    method: "GET",
    path: "/v1/admin/users/usage/summary",
    key: "adminKey",
};
export const createCredential = {
    method: "POST",
    path: "/v1/admin/credentials",
    key: "adminKey",
};
export const listCredentials = {
    method: "GET",
    path: "/v1/admin/credentials",
    key: "adminKey",
};
export const getCredential = {
    method: "GET",
    path: "/v1/admin/credentials/{id}",
    key: "adminKey",
};
export const updateCredential = {
    method: "PATCH",
    path: "/v1/admin/credentials/{id}",
    key: "adminKey",
};
export const revokeCredential = {
    method: "DELETE",
    path: "/v1/admin/credentials/{id}",
    key: "adminKey",
};
export const rotateCredential = {
    method: "POST",
    path: "/v1/admin/credentials/{id}/rotate",
    key: "adminKey",
};
export const getCredentialLimits = {
    method: "GET",
    path: "/v1/admin/credentials/{id}/limits",
    key: "adminKey",
};
export const updateCredentialLimits = {
    method: "PUT",
    path: "/v1/admin/credentials/{id}/limits",
    key: "adminKey",
};
export const getCredentialRestrictions = {
    method: "GET",
    path: "/v1/admin/credentials/{id}/restrictions",
    key: "adminKey",
};
export const updateCredentialRestrictions = {
    method: "PUT",
    path: "/v1/admin/credentials/{id}/restrictions",
    key: "adminKey",
};
export const listUsageByCredential = {
    method: "GET",
    path: "/v1/admin/usage",
    key: "adminKey",
};
export const getCredentialUsage = {
    method: "GET",
    path: "/v1/admin/usage/{id}",
    key: "adminKey",
};
export const listCredentialUsageBreakdown = {
    method: "GET",
    path: "/v1/admin/usage/{id}/breakdown",
    key: "adminKey",
};
export const listUserUsageBreakdown = {
    method: "GET",
    path: "/v1/admin/users/{id}/usage/breakdown",
    key: "adminKey",
};
export const exportUsage = {
    method: "GET",
    path: "/v1/admin/usage/export",
    key: "adminKey",
    answer: "text",
};
export const listAuditLogs = {
    method: "GET",
    path: "/v1/admin/audit-logs",
    key: "adminKey",
};
export const createAdminKey = {
    method: "POST",
    path: "/v1/admin/admin-keys",
    key: "adminKey",
};
export const listAdminKeys = {
    method: "GET",
    path: "/v1/admin/admin-keys",
    key: "adminKey",
};
export const revokeAdminKey = {
    method: "DELETE",
    path: "/v1/admin/admin-keys/{id}",
    key: "adminKey",
};
export const getHome = {
    method: "GET",
    path: "/",
    key: "none",
    answer: "text",
};
export const getHealth = {
    method: "GET",
    path: "/health",
    key: "none",
};
export const getReadiness = {
    method: "GET",
    path: "/ready",
    key: "none",
};
export const getNetworkReadiness = {
    method: "GET",
    path: "/ready/{network}",
    key: "none",
};
export const getStatus = {
    method: "GET",
    path: "/v1/status",
    key: "none",
};
export const getStatusPage = {
    method: "GET",
    path: "/status",
    key: "none",
    answer: "text",
};
export const getMetrics = {
    method: "GET",
    path: "/metrics",
    key: "none",
    answer: "text",
};
export const getOpenapiDocument = {
    method: "GET",
    path: "/openapi.json",
    key: "none",
};
export const getDocs = {
    method: "GET",
    path: "/docs",
    key: "none",
    answer: "text",
};
export const getDocsFile = {
    method: "GET",
    path: "/docs/{file}",
    key: "none",
    answer: "text",
};
