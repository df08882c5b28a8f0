// Client of a Ledgerline service: Cardano transactions, assets and pools, and the administration of API keys.

export * from "./client.js";
export { type Beginning, type CallOptions, LedgerlineError, type Settings } from "./http.js";
export type * from "./types.js";
export { verifyWebhook, WebhookError } from "./webhooks.js";
