import { type Quantities } from "./json.js";
/** How to reach a service. */
export interface Settings {
    /** For chain operations. */
    apiKey?: string | undefined;
    /** For admin operations. Keep it out of browsers. */
    adminKey?: string | undefined;
    /** How long the service may be silent, 35 seconds by default. Then the call fails with a TimeoutError. */
    timeoutMs?: number | undefined;
}
/** Options of any call. */
export interface CallOptions {
    /** Ends the call, and its pauses between retries. */
    signal?: AbortSignal | undefined;
}
/** What the table of routes says about an operation. */
export interface Operation {
    method: string;
    path: string;
    key: "apiKey" | "adminKey" | "none";
    answer?: "text";
    quantities?: Quantities;
    /** The field of `data` with the items of a list, unless `data` is the list. */
    inside?: string;
}
type Values = Readonly<Record<string, unknown>>;
interface Received {
    response: Response;
    text: string;
}
/** A refusal by the service. */
export declare class LedgerlineError extends Error {
    readonly name = "LedgerlineError";
    /** The HTTP status. */
    readonly status: number;
    /** The stable code of the error, from the header `Error-Code`. */
    readonly code: string | undefined;
    /** The id of the request, to quote to the operator. */
    readonly requestId: string | undefined;
    /** After how many seconds to try again, if the service says so. */
    readonly retryAfterS: number | undefined;
    constructor({ response, text }: Received);
}
/** A connection to a service. */
export declare class Http {
    #private;
    constructor(url: string, settings?: Settings);
    /** The answer to one operation. Throws LedgerlineError and, without an answer, what `fetch` throws. */
    protected call<Answer>(operation: Operation, inPath: Values, options: Values, { signal }: CallOptions): Promise<Answer>;
    /** Every item of a list, page by page. */
    protected pages<Item>(operation: Operation, inPath: Values, options: Values, call: CallOptions): AsyncGenerator<Item, void, undefined>;
}
export {};
