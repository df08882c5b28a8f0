// The little that the programs beside need of a test runner.

import { LedgerlineError } from "ledgerline-client";

/** A fact about the running service, from the environment. */
export function given(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`the environment lacks ${name}`);
  return value;
}

/** Throws unless both values have the same types and digits. */
export function equal(actual: unknown, expected: unknown): void {
  const [found, wanted] = [shown(actual), shown(expected)];
  if (found !== wanted) throw new Error(`expected ${wanted}, found ${found}`);
}

/** The refusal with which a call ends. */
export async function refusal(call: Promise<unknown>): Promise<LedgerlineError> {
  const error = await failure(call);
  if (!(error instanceof LedgerlineError)) throw error;
  return error;
}

/** The error with which a call ends. */
export function failure(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    (answer) => Promise.reject(new Error(`expected an error, found ${shown(answer)}`)),
    (error: unknown) => error,
  );
}

/** Every item of a list. */
export async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  const found: Item[] = [];
  for await (const item of items) found.push(item);
  return found;
}

function shown(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => (typeof part === "bigint" ? `${part}n` : part)) ?? "undefined";
}
