// Client of a Ledgerline service: Cardano transactions, assets and pools, and the administration of API keys.
export * from "./client.js";
export { LedgerlineError } from "./http.js";
