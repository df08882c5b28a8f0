// Events are read as they happen, from where the reader has stopped, and amounts are exact.

import { Ledgerline } from "ledgerline-client";
import { equal, given, refusal } from "./expect.js";

const service = new Ledgerline(given("URL"), { apiKey: given("KEY") });
const id = given("SUBSCRIPTION");

const seen: Array<[number, string, unknown]> = [];
for await (const event of service.subscribe(id)) {
  seen.push([event.number, event.action, event.received]);
  if (event.number === 4) break;
}
equal(seen, [
  [1, "apply", 2_000_000n],
  [2, "apply", 2_000_000n],
  [3, "undo", 2_000_000n],
  [4, "apply", 2_000_000n],
]);
for await (const event of service.subscribe(id, { after: 3 })) {
  equal(event.number, 4);
  break;
}
const numbers: number[] = [];
for await (const event of service.iterateEvents(id, { limit: 1 })) numbers.push(event.number);
equal(numbers, [1, 2, 3, 4]);
const nowhere = service.subscribe("00000000-0000-4000-8000-000000000000");
equal((await refusal(nowhere.next())).code, "subscription_not_found");
