// Verification of webhooks, by the specification of Standard Webhooks.

import { read } from "./json.js";

const TOLERANCE_S = 300;

/** A request that is not a webhook of the service, or an old one that somebody sends again. Answer it with 400. */
export class WebhookError extends Error {
  override readonly name = "WebhookError";
}

/**
 * The content of a webhook, if it was signed with one of the secrets in the last five minutes.
 *
 * `body` is the request's as received, `headers` are its headers. While a secret is rotated, both are valid. Throws
 * WebhookError. A webhook may arrive more than once: its `webhook-id` tells.
 */
export async function verifyWebhook(
  body: string | Uint8Array,
  headers: Headers | Readonly<Record<string, string | string[] | undefined>>,
  secrets: string | readonly string[],
  nowS: number = Date.now() / 1000,
): Promise<unknown> {
  const id = header(headers, "webhook-id");
  const timestamp = header(headers, "webhook-timestamp");
  const signatures = header(headers, "webhook-signature");
  if (!/^\d+$/.test(timestamp)) throw new WebhookError("webhook-timestamp is not a number of seconds");
  if (Math.abs(nowS - Number(timestamp)) > TOLERANCE_S) {
    throw new WebhookError("webhook-timestamp is more than five minutes from now");
  }
  const text = typeof body === "string" ? body : new TextDecoder().decode(body);
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${text}`);
  for (const secret of typeof secrets === "string" ? [secrets] : secrets) {
    const raw = bytesOf(secret.replace(/^whsec_/, ""));
    if (!raw) throw new TypeError("a secret of webhooks is whsec_ and base64");
    const key = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of signatures.split(" ")) {
      const mac = signature.startsWith("v1,") ? bytesOf(signature.slice(3)) : undefined;
      if (mac && (await crypto.subtle.verify("HMAC", key, mac, signed))) return read(text);
    }
  }
  throw new WebhookError("no signature is of one of the secrets");
}

function header(headers: Headers | Readonly<Record<string, string | string[] | undefined>>, name: string): string {
  const value =
    headers instanceof Headers
      ? headers.get(name)
      : Object.entries(headers).find(([given]) => given.toLowerCase() === name)?.[1];
  if (typeof value !== "string") throw new WebhookError(`the header ${name} is missing`);
  return value;
}

/** The bytes of a base64 text, undefined if it is none. */
function bytesOf(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
