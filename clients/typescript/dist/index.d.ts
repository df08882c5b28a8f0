export * from "./client.js";
export { type CallOptions, LedgerlineError, type Settings } from "./http.js";
export type * from "./types.js";
