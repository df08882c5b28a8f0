// Webhooks are verified, by the example of the specification of Standard Webhooks.

import { verifyWebhook, WebhookError } from "ledgerline-client";
import { equal, failure } from "./expect.js";

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const other = "whsec_b29vb29vb29vb29vb29vb29vb29vb29v";
const [atS, body] = [1614265330, '{"test": 2432232314}'];
const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
const headers = {
  "Webhook-Id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
  "Webhook-Timestamp": String(atS),
  "Webhook-Signature": `v1,AAAA v2,x ${signature}`,
};

equal(await verifyWebhook(body, headers, secret, atS + 299), { test: 2432232314 });
equal(await verifyWebhook(new TextEncoder().encode(body), new Headers(headers), [other, secret], atS), JSON.parse(body));
for (const [sent, signed, from, nowS] of [
  [`${body} `, headers, secret, atS],
  [body, headers, other, atS],
  [body, headers, secret, atS + 301],
  [body, { ...headers, "Webhook-Id": "other" }, secret, atS],
  [body, { ...headers, "Webhook-Signature": "v1,!" }, secret, atS],
  [body, { "webhook-id": "x", "webhook-timestamp": "1" }, secret, atS],
] as const) {
  equal((await failure(verifyWebhook(sent, signed, from, nowS))) instanceof WebhookError, true);
}
