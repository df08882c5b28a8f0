// Onboard a customer, rotate its key while it is in use, and show and export last week's usage.
// In your own project, with "type": "module" in its package.json:
//
//     npm install <checkout>/clients/typescript typescript @types/node
//     npx tsc --module nodenext --types node onboard.ts
//     URL=http://127.0.0.1:8080 ADMIN_KEY=iiak_admin_… node onboard.js

import { createWriteStream } from "node:fs";
import { pipeline } from "node:stream/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { Ledgerline } from "ledgerline-client";

const URL = process.env.URL!;
const PREVIEW = 1;
const USAGE_SHOWS_WITHIN_MS = 5_000;
const WEEK_MS = 7 * 24 * 60 * 60 * 1000;

const partner = new Ledgerline(URL, { adminKey: process.env.ADMIN_KEY });
const { data: user } = await partner.createUser({ name: "Alice", external_id: `customer-${crypto.randomUUID()}` });
const { data: issued } = await partner.createCredential({
  name: "Backend",
  user_account_id: user.id,
  network_id: PREVIEW,
});
console.log(`Onboarded ${user.name} with the key ${issued.api_key.slice(0, 9)}…`);

// The customer's program. A refused request ends it.
const service = new Ledgerline(URL, { apiKey: issued.api_key });
let working = true;
const integration = (async () => {
  let answered = 0;
  for (; working; answered++) {
    await service.getOwnKey();
    await sleep(100);
  }
  return answered;
})();

await sleep(1_000);
// The former key stays valid for an hour, so every part of the integration can switch to the new one.
const { data: rotated } = await partner.rotateCredential(issued.credential.id, { overlap_seconds: 3_600 });
await sleep(1_000);
service.apiKey = rotated.api_key;
await sleep(1_000);
working = false;
console.log(`Rotated the key during ${await integration} requests; none was refused`);

await sleep(USAGE_SHOWS_WITHIN_MS);
const start_date = new Date(Date.now() - WEEK_MS).toISOString();
for await (const part of partner.iterateUserUsageBreakdown(user.id, { start_date, group_by: "endpoint" })) {
  console.log(`${part.period_start}  ${part.endpoint}  ${part.total_requests} requests`);
}
await pipeline(partner.streamUsage({ start_date, format: "csv" }), createWriteStream("usage.csv"));
console.log("Exported the usage of all customers to usage.csv");
