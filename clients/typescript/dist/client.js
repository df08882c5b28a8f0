// The client: one method for each operation. Made by `python -m clients.generate` from the table of routes; do not edit.
import { Http } from "./http.js";
import * as operations from "./operations.js";
/** A Ledgerline service: `new Ledgerline(url, { apiKey: "…", adminKey: "…" })`. */
export class Ledgerline extends Http {
    /** List the transactions of an address with their inputs and outputs. */
    listTransactions(address, options = {}, call = {}) {
        return this.call(operations.listTransactions, { address }, options, call);
    }
    /** Every item of `listTransactions`, page by page. */
    iterateTransactions(address, options = {}, call = {}) {
        return this.pages(operations.listTransactions, { address }, options, call);
    }
    /**
     * List the transactions of an address.
     *
     * A transaction is listed if it spends from the address or pays to it.
     */
    listTransactionHistory(address, options = {}, call = {}) {
        return this.call(operations.listTransactionHistory, { address }, options, call);
    }
    /** Every item of `listTransactionHistory`, page by page. */
    iterateTransactionHistory(address, options = {}, call = {}) {
        return this.pages(operations.listTransactionHistory, { address }, options, call);
    }
    /** Get a transaction by hash. */
    getTransaction(txHash, options = {}, call = {}) {
        return this.call(operations.getTransaction, { hash: txHash }, options, call);
    }
    /**
     * Get an asset.
     *
     * With `metadata_source=auto`, metadata comes from the first source that has any, in the order cip68, cip25,
     * registry. Any other value reads that source only. If the registry does not answer, the header `Metadata-
     * Warning` says so, and `metadata` is what the registry said within the last day, or null.
     */
    getAsset(asset, options = {}, call = {}) {
        return this.call(operations.getAsset, { asset }, options, call);
    }
    /** List the assets of a policy by supply, including burned ones. Ties are ordered by name. */
    listPolicyAssets(policyId, options = {}, call = {}) {
        return this.call(operations.listPolicyAssets, { policyId }, options, call);
    }
    /** Every item of `listPolicyAssets`, page by page. */
    iteratePolicyAssets(policyId, options = {}, call = {}) {
        return this.pages(operations.listPolicyAssets, { policyId }, options, call);
    }
    /** List holders of a policy by total quantity. */
    listPolicyHolders(policyId, options = {}, call = {}) {
        return this.call(operations.listPolicyHolders, { policyId }, options, call);
    }
    /** Every item of `listPolicyHolders`, page by page. */
    iteratePolicyHolders(policyId, options = {}, call = {}) {
        return this.pages(operations.listPolicyHolders, { policyId }, options, call);
    }
    /** List holders of an asset by quantity. */
    listAssetHolders(asset, options = {}, call = {}) {
        return this.call(operations.listAssetHolders, { asset }, options, call);
    }
    /** Every item of `listAssetHolders`, page by page. */
    iterateAssetHolders(asset, options = {}, call = {}) {
        return this.pages(operations.listAssetHolders, { asset }, options, call);
    }
    /** List the transactions with an asset in at least one output. */
    listAssetTransactions(asset, options = {}, call = {}) {
        return this.call(operations.listAssetTransactions, { asset }, options, call);
    }
    /** Every item of `listAssetTransactions`, page by page. */
    iterateAssetTransactions(asset, options = {}, call = {}) {
        return this.pages(operations.listAssetTransactions, { asset }, options, call);
    }
    /** List mints and burns of an asset, with one net quantity per transaction. */
    listAssetMints(asset, options = {}, call = {}) {
        return this.call(operations.listAssetMints, { asset }, options, call);
    }
    /** Every item of `listAssetMints`, page by page. */
    iterateAssetMints(asset, options = {}, call = {}) {
        return this.pages(operations.listAssetMints, { asset }, options, call);
    }
    /** Get a stake pool. */
    getPool(poolId, call = {}) {
        return this.call(operations.getPool, { poolId }, {}, call);
    }
    /** List the delegators of a stake pool by stake, largest first. */
    listPoolDelegators(poolId, options = {}, call = {}) {
        return this.call(operations.listPoolDelegators, { poolId }, options, call);
    }
    /** Every item of `listPoolDelegators`, page by page. */
    iteratePoolDelegators(poolId, options = {}, call = {}) {
        return this.pages(operations.listPoolDelegators, { poolId }, options, call);
    }
    /**
     * Read the network, limits, expiry and restrictions of the API key of this request.
     *
     * The request counts, as any other. Every key may make it, whatever its scopes.
     */
    getOwnKey(call = {}) {
        return this.call(operations.getOwnKey, {}, {}, call);
    }
    /**
     * Create a user account. It belongs to the admin key that creates it, and starts active.
     *
     * Requires the permission `manage_users`.
     */
    createUser(options, call = {}) {
        return this.call(operations.createUser, {}, options, call);
    }
    /**
     * List the caller's user accounts that match the filters, newest first.
     *
     * Requires the permission `manage_users`.
     */
    listUsers(options = {}, call = {}) {
        return this.call(operations.listUsers, {}, options, call);
    }
    /** Every item of `listUsers`, page by page. */
    iterateUsers(options = {}, call = {}) {
        return this.pages(operations.listUsers, {}, options, call);
    }
    /**
     * Read one user account.
     *
     * Requires the permission `manage_users`.
     */
    getUser(userId, call = {}) {
        return this.call(operations.getUser, { id: userId }, {}, call);
    }
    /**
     * Change fields of a user account.
     *
     * Omitted fields stay unchanged, null clears an optional field, and `metadata` is replaced as a whole. An empty
     * body changes nothing. Requires the permission `manage_users`.
     */
    updateUser(userId, options = {}, call = {}) {
        return this.call(operations.updateUser, { id: userId }, options, call);
    }
    /**
     * Delete a user account permanently: end its API keys and erase what is personal.
     *
     * Names, references, email, descriptions, metadata and networks are erased, also in the audit log. Usage
     * remains, under the ids of the account and its credentials. Requires the permission `manage_users`.
     */
    deleteUser(userId, call = {}) {
        return this.call(operations.deleteUser, { id: userId }, {}, call);
    }
    /**
     * Read one user account by the partner's own reference.
     *
     * Requires the permission `manage_users`.
     */
    getUserByExternalId(externalId, call = {}) {
        return this.call(operations.getUserByExternalId, { external_id: externalId }, {}, call);
    }
    /**
     * Suspend a user account: its API keys are refused from now on. A repeated call changes nothing.
     *
     * Requires the permission `manage_users`.
     */
    suspendUser(userId, call = {}) {
        return this.call(operations.suspendUser, { id: userId }, {}, call);
    }
    /**
     * Reactivate a user account and its API keys. A repeated call changes nothing.
     *
     * Requires the permission `manage_users`.
     */
    reactivateUser(userId, call = {}) {
        return this.call(operations.reactivateUser, { id: userId }, {}, call);
    }
    /**
     * Read the usage of one user account. The default period is the last 30 days.
     *
     * Requires the permission `view_usage`.
     */
    getUserUsage(userId, options = {}, call = {}) {
        return this.call(operations.getUserUsage, { id: userId }, options, call);
    }
    /**
     * List the usage of the caller's active accounts, most requests first. The default period is the last 30 days.
     *
     * Requires the permission `view_usage`.
     */
    listUsageByUser(options = {}, call = {}) {
        return this.call(operations.listUsageByUser, {}, options, call);
    }
    /** Every item of `listUsageByUser`, page by page. */
    iterateUsageByUser(options = {}, call = {}) {
        return this.pages(operations.listUsageByUser, {}, options, call);
    }
    /**
     * Issue an API key to a user account.
     *
     * Only this answer contains the full key; the service stores its SHA-256. The key of a suspended account works
     * once the account is active again. Requires the permission `manage_credentials`.
     */
    createCredential(options, call = {}) {
        return this.call(operations.createCredential, {}, options, call);
    }
    /**
     * List the credentials of the caller's accounts that match the filters, newest first.
     *
     * Requires the permission `manage_credentials`.
     */
    listCredentials(options = {}, call = {}) {
        return this.call(operations.listCredentials, {}, options, call);
    }
    /** Every item of `listCredentials`, page by page. */
    iterateCredentials(options = {}, call = {}) {
        return this.pages(operations.listCredentials, {}, options, call);
    }
    /**
     * Read one credential, revoked or not.
     *
     * Requires the permission `manage_credentials`.
     */
    getCredential(credentialId, call = {}) {
        return this.call(operations.getCredential, { id: credentialId }, {}, call);
    }
    /**
     * Change the name or the description of a credential that is not revoked.
     *
     * Requires the permission `manage_credentials`.
     */
    updateCredential(credentialId, options = {}, call = {}) {
        return this.call(operations.updateCredential, { id: credentialId }, options, call);
    }
    /**
     * Revoke a credential permanently. Its API key is refused from the next request on; the record remains.
     *
     * Requires the permission `manage_credentials`.
     */
    revokeCredential(credentialId, call = {}) {
        return this.call(operations.revokeCredential, { id: credentialId }, {}, call);
    }
    /**
     * Replace the API key of a credential by a new one. The former key remains valid for `overlap_seconds`.
     *
     * Only this answer contains the new key. Both keys count for the same credential and share its limits; usage
     * continues under the same id, and restrictions stay. Revocation ends both. Requires the permission
     * `manage_credentials`.
     */
    rotateCredential(credentialId, options, call = {}) {
        return this.call(operations.rotateCredential, { id: credentialId }, options, call);
    }
    /**
     * Read the limits of a credential, revoked or not.
     *
     * Requires the permission `manage_credentials`.
     */
    getCredentialLimits(credentialId, call = {}) {
        return this.call(operations.getCredentialLimits, { id: credentialId }, {}, call);
    }
    /**
     * Change limits of a credential that is not revoked, for its very next request.
     *
     * Omitted fields stay unchanged; null removes the expiry or the quota. A new quota includes the requests that
     * its day or month has already seen. Requires the permission `manage_credentials`.
     */
    updateCredentialLimits(credentialId, options = {}, call = {}) {
        return this.call(operations.updateCredentialLimits, { id: credentialId }, options, call);
    }
    /**
     * Read the restrictions of a credential, revoked or not.
     *
     * Requires the permission `manage_credentials`.
     */
    getCredentialRestrictions(credentialId, call = {}) {
        return this.call(operations.getCredentialRestrictions, { id: credentialId }, {}, call);
    }
    /**
     * Restrict a credential that is not revoked to networks, to scopes, or to both, for its very next request.
     *
     * Omitted fields stay unchanged; an empty array or null removes a restriction. Each chain endpoint belongs to
     * one scope; `/v1/key` may be called with any. Requires the permission `manage_credentials`.
     */
    updateCredentialRestrictions(credentialId, options = {}, call = {}) {
        return this.call(operations.updateCredentialRestrictions, { id: credentialId }, options, call);
    }
    /**
     * List the usage of every credential of the caller, most requests first.
     *
     * The list includes revoked and unused credentials. Without dates, all requests count. Requires the permission
     * `view_usage`.
     */
    listUsageByCredential(options = {}, call = {}) {
        return this.call(operations.listUsageByCredential, {}, options, call);
    }
    /** Every item of `listUsageByCredential`, page by page. */
    iterateUsageByCredential(options = {}, call = {}) {
        return this.pages(operations.listUsageByCredential, {}, options, call);
    }
    /**
     * Read the usage of one credential, in total and by day.
     *
     * The default period is from the credential's creation to now. Requires the permission `view_usage`.
     */
    getCredentialUsage(credentialId, options = {}, call = {}) {
        return this.call(operations.getCredentialUsage, { id: credentialId }, options, call);
    }
    /**
     * List the usage of one credential by period, newest first, then by endpoint and status.
     *
     * Whole hours count. The default period is the last 30 days. Requires the permission `view_usage`.
     */
    listCredentialUsageBreakdown(credentialId, options = {}, call = {}) {
        return this.call(operations.listCredentialUsageBreakdown, { id: credentialId }, options, call);
    }
    /** Every item of `listCredentialUsageBreakdown`, page by page. */
    iterateCredentialUsageBreakdown(credentialId, options = {}, call = {}) {
        return this.pages(operations.listCredentialUsageBreakdown, { id: credentialId }, options, call);
    }
    /**
     * List the usage of all credentials of an account by period, newest first, then by endpoint and status.
     *
     * Whole hours count. The default period is the last 30 days. Requires the permission `view_usage`.
     */
    listUserUsageBreakdown(userId, options = {}, call = {}) {
        return this.call(operations.listUserUsageBreakdown, { id: userId }, options, call);
    }
    /** Every item of `listUserUsageBreakdown`, page by page. */
    iterateUserUsageBreakdown(userId, options = {}, call = {}) {
        return this.pages(operations.listUserUsageBreakdown, { id: userId }, options, call);
    }
    /**
     * Download the usage of every credential by period, endpoint and status, as CSV or as JSON lines.
     *
     * Whole hours count. The default period is the last 30 days. The answer is a stream; if it ends without its last
     * chunk, it is incomplete. Requires the permission `view_usage`.
     */
    exportUsage(options = {}, call = {}) {
        return this.call(operations.exportUsage, {}, options, call);
    }
    /**
     * List audit log entries, newest first.
     *
     * A partner sees the actions of its own admin key; the bootstrap key sees all. Requires the permission
     * `view_audit_logs`.
     */
    listAuditLogs(options = {}, call = {}) {
        return this.call(operations.listAuditLogs, {}, options, call);
    }
    /** Every item of `listAuditLogs`, page by page. */
    iterateAuditLogs(options = {}, call = {}) {
        return this.pages(operations.listAuditLogs, {}, options, call);
    }
    /**
     * Issue an admin key to a partner. Only this answer contains the full key.
     *
     * Requires the bootstrap key.
     */
    createAdminKey(options, call = {}) {
        return this.call(operations.createAdminKey, {}, options, call);
    }
    /**
     * List all admin keys, including the bootstrap key and revoked ones, newest first.
     *
     * Requires the bootstrap key.
     */
    listAdminKeys(options = {}, call = {}) {
        return this.call(operations.listAdminKeys, {}, options, call);
    }
    /** Every item of `listAdminKeys`, page by page. */
    iterateAdminKeys(options = {}, call = {}) {
        return this.pages(operations.listAdminKeys, {}, options, call);
    }
    /**
     * Revoke an admin key permanently. Its admin access ends at once; the API keys of its accounts continue to work.
     *
     * Requires the bootstrap key.
     */
    revokeAdminKey(adminKeyId, call = {}) {
        return this.call(operations.revokeAdminKey, { id: adminKeyId }, {}, call);
    }
    /** Show a page with links, for people who open this API in a browser. */
    getHome(call = {}) {
        return this.call(operations.getHome, {}, {}, call);
    }
    /** Check that the process is alive. */
    getHealth(call = {}) {
        return this.call(operations.getHealth, {}, {}, call);
    }
    /**
     * Check whether chain requests can be answered and counted; if not, the answer is 503 with the reasons.
     *
     * With status 200, `degraded` lists the problems that do not affect requests.
     */
    getReadiness(call = {}) {
        return this.call(operations.getReadiness, {}, {}, call);
    }
    /**
     * Check whether chain requests of one network are answered from a recent block, and counted; if not, 503.
     *
     * The last block may be READY_LAG_S old, 300 seconds unless configured.
     */
    getNetworkReadiness(network, call = {}) {
        return this.call(operations.getNetworkReadiness, { network }, {}, call);
    }
    /** Get the state of each network and of usage. An answer is up to a second old. */
    getStatus(call = {}) {
        return this.call(operations.getStatus, {}, {}, call);
    }
    /** Show a page with the state of the service, which follows /v1/status. */
    getStatusPage(call = {}) {
        return this.call(operations.getStatusPage, {}, {}, call);
    }
    /** Show the metrics of all API processes of this host in Prometheus' text format. */
    getMetrics(call = {}) {
        return this.call(operations.getMetrics, {}, {}, call);
    }
    /** Get this OpenAPI document. */
    getOpenapiDocument(call = {}) {
        return this.call(operations.getOpenapiDocument, {}, {}, call);
    }
    /** Show the interactive documentation of this API. */
    getDocs(call = {}) {
        return this.call(operations.getDocs, {}, {}, call);
    }
    /** Get a file of a page. */
    getDocsFile(file, call = {}) {
        return this.call(operations.getDocsFile, { file }, {}, call);
    }
}
