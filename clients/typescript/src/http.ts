// Sends requests: keys, retries after 429 and 503, errors, pages.

import { type Quantities, read, withQuantities, write } from "./json.js";
import type { ToldEvent } from "./types.js";

/** The settings of a connection to a service. */
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
  /** The `Idempotency-Key` of a POST, by default a new one for each call. */
  idempotencyKey?: string | undefined;
}

/** The properties of an operation in the table of routes. */
export interface Operation {
  method: string;
  path: string;
  key: "apiKey" | "adminKey" | "none";
  /** Takes an `Idempotency-Key`, so it is executed once, however often its request is sent. */
  idempotent?: true;
  answer?: "text";
  quantities?: Quantities;
  /** The field of `data` with the items of a list, unless `data` is the list. */
  inside?: string;
}

/** Where a subscription is read from: after the event with a number, or after a block whose state was loaded. */
export interface Beginning {
  after?: number | undefined;
  after_block?: string | undefined;
}

type Values = Readonly<Record<string, unknown>>;

interface Pagination {
  limit: number;
  offset: number;
  total?: number;
  hasMore?: boolean;
  next_cursor?: number | string;
  /** Of a log: the number of the last event of the page. */
  next?: number;
}

interface Received {
  response: Response;
  text: string;
}

const STREAM: Operation = { method: "GET", path: "/v1/subscriptions/{id}/events/stream", key: "apiKey", answer: "text" };
const TOLD: ReadonlySet<string> = new Set(["apply", "undo", "reset", "notice"]);
const OF_EVENT: Quantities = { received: true, spent: true };

const MAX_TRIES = 6;
/** A rate limit resets within a minute. A longer pause, until a quota resets, is left to the caller. */
const MAX_PAUSE_S = 65;
const TIMEOUT_MS = 35_000;

/** A refusal by the service. */
export class LedgerlineError extends Error {
  override readonly name = "LedgerlineError";
  /** The HTTP status. */
  readonly status: number;
  /** The stable code of the error, from the header `Error-Code`. */
  readonly code: string | undefined;
  /** The id of the request, to quote to the operator. */
  readonly requestId: string | undefined;
  /** The number of seconds to wait before a retry, if the service gives one. */
  readonly retryAfterS: number | undefined;

  constructor({ response, text }: Received) {
    super(`${response.status} ${messageOf(text) ?? response.statusText}`);
    this.status = response.status;
    this.code = response.headers.get("Error-Code") ?? undefined;
    this.requestId = response.headers.get("X-Request-Id") ?? undefined;
    this.retryAfterS = retryAfterS(response);
  }
}

/** A connection to a service. */
export class Http {
  readonly #url: string;
  readonly #timeoutMs: number;
  /** Sent by each chain operation from now on: set it after a rotation. */
  apiKey: string | undefined;
  /** Sent by each admin operation from now on. */
  adminKey: string | undefined;

  constructor(url: string, { apiKey, adminKey, timeoutMs }: Settings = {}) {
    this.#url = new URL(url).href.replace(/\/+$/, ""); // throws now if it is not a URL
    this.#timeoutMs = timeoutMs ?? TIMEOUT_MS;
    this.apiKey = apiKey;
    this.adminKey = adminKey;
  }

  /** The answer to one operation. Throws LedgerlineError or, without an answer, the error of `fetch`. */
  protected async call<Answer>(
    operation: Operation,
    inPath: Values,
    options: Values,
    { signal, idempotencyKey }: CallOptions,
  ): Promise<Answer> {
    const [url, request] = this.#request(operation, inPath, options, idempotencyKey);
    for (let tries = 1; ; tries++) {
      let received: Received | undefined;
      try {
        for await (const { response, text } of this.#parts(url, request, signal)) {
          received = { response, text: (received?.text ?? "") + text };
        }
      } catch (error) {
        if (tries === MAX_TRIES || !isRepeatable(operation) || !(error instanceof TypeError)) throw error;
        received = undefined;
      }
      if (received?.response.ok) return answerOf(operation, received.text) as Answer;
      await beforeRetry(operation, received, tries, signal);
    }
  }

  /**
   * The lines of a download as they arrive, each with its line end. Throws LedgerlineError or, if the answer
   * is incomplete, the error of `fetch`, even after some lines.
   */
  protected async *lines(
    operation: Operation,
    inPath: Values,
    options: Values,
    { signal }: CallOptions,
  ): AsyncGenerator<string, void, undefined> {
    const [url, request] = this.#request(operation, inPath, options, undefined);
    for (let tries = 1; ; tries++) {
      let refused: Received | undefined;
      let begun = false;
      let rest = "";
      try {
        for await (const { response, text } of this.#parts(url, request, signal)) {
          if (!response.ok) {
            refused = { response, text: (refused?.text ?? "") + text };
            continue;
          }
          begun = true;
          const ended = (rest + text).split("\n");
          rest = ended.pop()!;
          for (const line of ended) yield `${line}\n`;
        }
        if (rest) yield rest;
        if (begun) return;
      } catch (error) {
        if (begun || tries === MAX_TRIES || !(error instanceof TypeError)) throw error;
        refused = undefined;
      }
      await beforeRetry(operation, refused, tries, signal);
    }
  }

  /**
   * Every event of a subscription as it happens, without end, whatever interrupts the connection.
   *
   * It begins after an event or a block or, without either, with the first event that is kept. Store the `number` of
   * an event in the same commit as what follows from it, and continue after it when your program starts again.
   *
   * Throws LedgerlineError when the key or the subscription has ended, with the code `events_not_kept` if `after` is
   * too far back, and with `block_not_followed` if the log has no position for the block.
   */
  async *subscribe(
    subscriptionId: string,
    from: Beginning = {},
    call: Pick<CallOptions, "signal"> = {},
  ): AsyncGenerator<ToldEvent, void, undefined> {
    let place: Values = { ...from };
    for (let silent = 0; ; silent++) {
      let field: Record<string, string> = {};
      try {
        for await (const line of this.lines(STREAM, { id: subscriptionId }, place, call)) {
          const colon = line.indexOf(": ");
          if (colon > 0) {
            field[line.slice(0, colon)] = line.slice(colon + 2, -1);
            continue;
          }
          const { id, event, data } = field;
          field = {};
          if (id !== undefined) {
            place = { after: id };
            silent = 0;
          }
          if (data !== undefined && TOLD.has(event!)) yield withQuantities(read(data), OF_EVENT) as ToldEvent;
        }
      } catch (error) {
        call.signal?.throwIfAborted();
        if (!isPassing(error)) throw error;
      }
      await sleep(Math.min(0.5 * 2 ** silent, 30) * (0.5 + Math.random() / 2), call.signal);
    }
  }

  /** Every item of a list, page by page. */
  protected async *pages<Item>(
    operation: Operation,
    inPath: Values,
    options: Values,
    call: CallOptions,
  ): AsyncGenerator<Item, void, undefined> {
    let place: Values | undefined = {};
    while (place) {
      const page: { data: never; pagination: Pagination } = await this.call(
        operation,
        inPath,
        { ...options, ...place },
        call,
      );
      yield* (operation.inside ? page.data[operation.inside] : page.data) as Item[];
      place = next(page.pagination, place);
    }
  }

  #request(
    { method, path, key, idempotent }: Operation,
    inPath: Values,
    options: Values,
    idempotencyKey: string | undefined,
  ): [string, RequestInit] {
    const headers: Record<string, string> = {};
    if (idempotent) headers["Idempotency-Key"] = idempotencyKey ?? crypto.randomUUID();
    if (key !== "none") {
      const given = this[key];
      if (!given) throw new TypeError(`this operation needs ${key}, but the client has none`);
      headers["Authorization"] = `Bearer ${given}`;
    }
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(inPath[name])));
    if (method === "GET" || method === "DELETE") {
      const given = Object.entries(options).filter(([, value]) => value !== undefined);
      const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
      return [`${this.#url}${filled}${query && `?${query}`}`, { method, headers }];
    }
    headers["Content-Type"] = "application/json";
    return [`${this.#url}${filled}`, { method, headers, body: write(options) }];
  }

  /**
   * Send a request once: its response with no text, then with each part of its text. Aborts if the service is silent
   * for too long, or on `signal`. Ends the connection if the caller stops before the last part.
   */
  async *#parts(
    url: string,
    request: RequestInit,
    signal: AbortSignal | undefined,
  ): AsyncGenerator<Received, void, undefined> {
    signal?.throwIfAborted();
    const silence = new DOMException(`the service was silent for ${this.#timeoutMs} ms`, "TimeoutError");
    const aborter = new AbortController();
    const abort = () => aborter.abort(signal?.reason);
    signal?.addEventListener("abort", abort);
    const heard = async <Part>(part: Promise<Part>): Promise<Part> => {
      const timer = setTimeout(() => aborter.abort(silence), this.#timeoutMs);
      return part.finally(() => clearTimeout(timer));
    };
    try {
      const response = await heard(fetch(url, { ...request, signal: aborter.signal }));
      yield { response, text: "" };
      const reader = response.body?.getReader();
      const decoder = new TextDecoder();
      for (let done = !reader; !done; ) {
        const part = await heard(reader!.read());
        done = part.done;
        yield { response, text: decoder.decode(part.value, { stream: !done }) };
      }
    } finally {
      aborter.abort();
      signal?.removeEventListener("abort", abort);
    }
  }
}

/** Whether the next stream may go on where one has ended: after a lost connection, silence, or a refusal for now. */
function isPassing(error: unknown): boolean {
  if (error instanceof LedgerlineError) return error.status >= 500 || error.status === 429;
  return error instanceof TypeError || (error instanceof DOMException && error.name === "TimeoutError");
}

/** Wait before a retry. Throws the refusal if a retry is not worthwhile, or if no tries are left. */
async function beforeRetry(
  operation: Operation,
  refused: Received | undefined,
  tries: number,
  signal: AbortSignal | undefined,
): Promise<void> {
  if (refused && (tries === MAX_TRIES || !mayRepeat(operation, refused.response))) throw new LedgerlineError(refused);
  await sleep(pauseS(refused?.response, tries), signal);
}

/** Whether a retry may help soon and is safe. A refusal with 429 has no effect. */
function mayRepeat(operation: Operation, response: Response): boolean {
  if ((retryAfterS(response) ?? 0) > MAX_PAUSE_S) return false;
  return response.status === 429 || (response.status === 503 && isRepeatable(operation));
}

/** Whether a request may be sent again although it may have been executed. */
function isRepeatable({ method, idempotent }: Operation): boolean {
  return method === "GET" || idempotent === true;
}

/** The pause before a retry: the one that the service requests, otherwise twice as long each time. */
function pauseS(response: Response | undefined, tries: number): number {
  const asked = response && retryAfterS(response);
  return (asked ?? 0.125 * 2 ** tries) + Math.random() / 10;
}

function retryAfterS(response: Response): number | undefined {
  const asked = response.headers.get("Retry-After");
  return asked !== null && /^\d+$/.test(asked) ? Number(asked) : undefined;
}

function sleep(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener("abort", abort, { once: true });
  });
}

function answerOf({ answer, quantities }: Operation, text: string): unknown {
  if (answer === "text") return text;
  return quantities ? withQuantities(read(text), quantities) : read(text);
}

/** The message of a failure, unless something between the client and the service answered. */
function messageOf(text: string): string | undefined {
  try {
    return (JSON.parse(text) as { error: string }).error;
  } catch {
    return undefined;
  }
}

/**
 * The position of the next page of a list, undefined after the last one. Lists continue at a cursor, if any, at the
 * same cost for any depth. The cursor of histories is a slot.
 */
function next(page: Pagination, place: Values): Values | undefined {
  if (page.next !== undefined) return page.hasMore ? { after: page.next, after_block: undefined } : undefined;
  if (typeof page.next_cursor === "string") return { cursor: page.next_cursor };
  if (page.next_cursor !== undefined) return { fromSlot: page.next_cursor };
  const offset = page.offset + page.limit;
  return (page.hasMore ?? offset < (page.total ?? 0)) ? { ...place, offset } : undefined;
}
