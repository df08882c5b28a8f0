// What is tried again, and what is not, by a service that is busy at first.

import { Ledgerline } from "ledgerline-client";
import { equal, failure, given, refusal } from "./expect.js";

const service = new Ledgerline(given("URL"), { apiKey: "k", adminKey: "a" });

equal((await service.getPool("pool1")).success, true);
equal((await service.createUser({ name: "Alice" })).success, true);
equal((await service.suspendUser("u")).success, true);
equal((await service.suspendUser("u", { idempotencyKey: "mine" })).success, true);
const uncertain = await refusal(service.revokeCredential("c"));
equal([uncertain.status, uncertain.message, uncertain.retryAfterS], [503, "503 busy", 0]);
const usedUp = await refusal(service.getOwnKey());
equal([usedUp.status, usedUp.code, usedUp.retryAfterS], [429, "busy", 86_400]);

const aborter = new AbortController();
const call = failure(service.getAsset("slow", {}, { signal: aborter.signal }));
setTimeout(() => aborter.abort(new Error("enough")), 0);
equal(String(await call), "Error: enough");
const waiter = new AbortController();
const waiting = failure(service.getNetwork({ signal: waiter.signal }));
setTimeout(() => waiter.abort(new Error("it waits")), 1000); // the refusal has arrived by then
equal(String(await waiting), "Error: it waits");
const impatient = new Ledgerline(given("URL"), { timeoutMs: 50 });
equal(String(await failure(impatient.getStatus())), "TimeoutError: the service was silent for 50 ms");
