// The HTTP API as the pages call it: the admin key, requests, refusals, exports, and the same calls as curl.

const STORED_AS = "ledgerline-admin-key";
const ANSWER_WITHIN_MS = 35_000; // the service answers or gives up within 30 s
const NO_LONGER_VALID = ["invalid_admin_key", "missing_admin_key"];

// A failure: the API's own words, status and Error-Code. The status is 0 if no answer arrived.
export class Refused extends Error {
  constructor(message, status = 0, code = "", requestId = "") {
    super(message);
    Object.assign(this, { status, code, requestId });
  }
}

// The admin key --------------------------------------------------------------------------------------------------------

// The admin key is kept only in this tab's sessionStorage, and is forgotten when the tab is closed.
export const session = {
  // The keys for trying calls, by the name of their security scheme. They are kept only here, so a reload forgets them.
  tried: {},
  get key() {
    return sessionStorage.getItem(STORED_AS);
  },
  // Called when the API no longer accepts the session's key.
  onRefused: () => {},
  end() {
    session.tried = {};
    sessionStorage.removeItem(STORED_AS);
  },
};

// Stores a key if the API accepts it. Returns whether it is the bootstrap key; throws Refused.
export async function signIn(key) {
  if (!/^iiak_admin_[0-9a-f]{40}$/.test(key)) throw new Refused("An admin key is iiak_admin_ followed by 40 hex characters");
  const bootstrap = await isBootstrap(key);
  sessionStorage.setItem(STORED_AS, key);
  return bootstrap;
}

// Only the bootstrap key may list admin keys; a partner's valid key is denied the permission.
async function isBootstrap(key) {
  try {
    await send("GET", "/v1/admin/admin-keys?limit=1", { key });
    return true;
  } catch (fault) {
    if (fault.code === "permission_denied") return false;
    throw fault;
  }
}

// Calls ----------------------------------------------------------------------------------------------------------------

// Makes a call, with the session's admin key unless another key is given, and returns the answer's body. Throws Refused, or AbortError
// if `signal` aborts it.
export async function call(method, path, { body, signal, key = session.key } = {}) {
  try {
    const response = await send(method, path, { key, body, signal });
    return parsed(await response.text());
  } catch (fault) {
    if (NO_LONGER_VALID.includes(fault.code)) session.onRefused(fault);
    throw fault;
  }
}

// The value of JSON text. Integers that JavaScript would round, such as those in metadata, keep their digits.
export function parsed(text) {
  const rounded = (value) => Number.isInteger(value) && !Number.isSafeInteger(value);
  return JSON.parse(text, (_, value, { source } = {}) => (rounded(value) && JSON.rawJSON ? JSON.rawJSON(source) : value));
}

export const get = (path, signal) => call("GET", path, { signal });

// Makes a call and returns the whole response, even if it is a refusal. Throws Refused if none arrives.
export const tried = (method, path, options) => respond(method, path, options);

// Yields the rows of a JSON Lines answer as they arrive. Throws as `call` does.
export async function* rows(path, signal) {
  const response = await send("GET", path, { key: session.key, signal, patient: true });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read().catch((fault) => {
        throw fault.name === "AbortError" ? fault : new Refused("The connection was lost before the answer was complete");
      });
      if (done) return;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) yield JSON.parse(line);
    }
  } finally {
    reader.cancel().catch(() => {}); // cancels the rest of the answer if the caller stops early
  }
}

// Saves the answer of a path as a file.
export async function download(path, name) {
  const response = await send("GET", path, { key: session.key, patient: true });
  const address = URL.createObjectURL(await response.blob());
  const anchor = Object.assign(document.createElement("a"), { href: address, download: name });
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(address));
}

async function send(method, path, options) {
  const response = await respond(method, path, options);
  if (response.ok) return response;
  const text = await response.text();
  throw new Refused(messageOf(text) ?? `The service answered with status ${response.status}`, response.status, response.headers.get("Error-Code") ?? "", response.headers.get("X-Request-Id") ?? "");
}

async function respond(method, path, { key, body, signal, patient = false, headers: given = {} }) {
  const headers = { ...given };
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const ends = patient ? [] : [AbortSignal.timeout(ANSWER_WITHIN_MS)];
  if (signal) ends.push(signal);
  try {
    // `no-store` keeps partners' data out of the browser's cache.
    return await fetch(path, { method, headers, body, signal: AbortSignal.any(ends), cache: "no-store" });
  } catch (fault) {
    if (fault.name === "AbortError") throw fault;
    throw new Refused("The service is not answering");
  }
}

function messageOf(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return undefined;
  }
}

// The description of the API -------------------------------------------------------------------------------------------

let described;

// The OpenAPI document, fetched once.
export function description() {
  described ??= fetch("/openapi.json").then((response) => {
    if (!response.ok) throw new Refused(`/openapi.json answered with status ${response.status}`, response.status);
    return response.json();
  });
  described.catch(() => (described = undefined));
  return described;
}

// Every operation of the document, in its order. `key` names the security scheme of its key, undefined if it needs none.
export function operationsOf({ paths }) {
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({
      ...operation,
      id: operation.operationId,
      method: method.toUpperCase(),
      path,
      tag: operation.tags[0],
      key: Object.keys(operation.security[0] ?? {})[0],
      body: operation.requestBody?.content["application/json"],
    })),
  );
}

// The remedies for a refusal.
export async function remedy(code) {
  const { "x-errors": errors } = await description();
  return errors.find((each) => each.code === code)?.remedies.join(" ").replaceAll("`", "");
}

// The choices that a field of an operation's body accepts, for example the scopes of a key.
export async function choices(path, method, field) {
  const { paths } = await description();
  const schema = paths[path][method].requestBody.content["application/json"].schema.properties[field];
  return (schema.items ?? schema.anyOf.find((each) => each.items).items).enum;
}

// The same call as a curl command. The key is a shell variable ("" if there is none), so that it does not end up in the shell's history.
export function curl(method, path, body, variable = "ADMIN_KEY", headers = {}) {
  const parts = [method === "GET" ? "curl -sS" : `curl -sS -X ${method}`, quoted(location.origin + path)];
  if (variable) parts.push(`-H "Authorization: Bearer $${variable}"`);
  for (const [name, value] of Object.entries(headers)) parts.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (body !== undefined) parts.push("-H 'Content-Type: application/json'", `--data ${quoted(body)}`);
  return parts.join(" \\\n  ");
}

const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;
