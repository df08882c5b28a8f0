// The life of a customer, and its questions about the chain.

import { Ledgerline } from "ledgerline-client";
import { all, equal, failure, given, refusal } from "./expect.js";

const MANY = 5;
const LARGE = 2n ** 60n + 1n;

const url = given("URL");
const partner = new Ledgerline(url, { adminKey: given("ADMIN_KEY") });

// The account: exact integers both ways; null clears a field, an absent one stays.
const metadata = { tier: LARGE, seats: 3, tags: ["a", "1234567890123456789", "\\\"", 0.1 + 0.2] };
const { data: user } = await partner.createUser({ name: "Alice", external_id: "customer/1", email: "a@b", metadata });
equal((await partner.getUserByExternalId("customer/1")).data.metadata, metadata);
await partner.updateUser(user.id, { email: null, external_id: undefined });
const { data: updated } = await partner.getUser(user.id);
equal([updated.email, updated.external_id], [null, "customer/1"]);

// Its credentials, and pages of them.
const keys: string[] = [];
for (let number = 0; number < MANY; number++) {
  const { data } = await partner.createCredential({ name: `${number}`, user_account_id: user.id, network_id: 1 });
  keys.push(data.api_key);
}
const listed = await all(partner.iterateCredentials({ limit: 2 }));
equal(listed.map((each) => each.name), ["4", "3", "2", "1", "0"]);
const [last, spare] = listed as [(typeof listed)[0], (typeof listed)[0]];
await partner.revokeCredential(spare.id);
equal((await all(partner.iterateCredentials({ limit: 3 }))).length, MANY - 1);
equal((await all(partner.iterateCredentials({ limit: 3, includeRevoked: true }))).length, MANY);

// The life of a key.
const rotated = await partner.rotateCredential(last.id, { overlap_seconds: 3600 });
for (const apiKey of [keys[MANY - 1], rotated.data.api_key]) {
  equal((await new Ledgerline(url, { apiKey }).getOwnKey()).data.credential_id, last.id);
}
await partner.updateCredentialLimits(last.id, { quota: { requests: 1000, per: "day" }, rate_limit_per_minute: 500 });
await partner.updateCredentialLimits(last.id, { quota: null });
const { data: limits } = await partner.getCredentialLimits(last.id);
equal([limits.quota, limits.rate_limit_per_minute], [null, 500]);
await partner.updateCredentialRestrictions(last.id, { scopes: ["transactions"] });
const customer = new Ledgerline(url, { apiKey: rotated.data.api_key });
const notCovered = await refusal(customer.getPool("0".repeat(56)));
equal([notCovered.status, notCovered.code], [403, "scope_not_covered"]);

// The chain.
const alice = given("ALICE");
const walked = await all(customer.iterateTransactionHistory(alice, { limit: 1 }));
const page = await customer.listTransactionHistory(alice);
equal(walked, page.data);
equal(new Set(walked.map((each) => each.tx_hash)).size, page.pagination.total);
const { data: transaction } = await customer.getTransaction(given("RICH"));
const lovelace: bigint = transaction.outputs[0]!.value.lovelace;
const fee: bigint | null = transaction.fee;
equal([lovelace, fee, transaction.block_no], [2n ** 63n - 1n, 170_000n, 1]);
equal(transaction.outputs[0]!.value.assets?.[given("ASSET")], 2n ** 64n - 1n);
equal((await refusal(customer.getTransaction("0".repeat(64)))).message, "404 Transaction not found");
await partner.updateCredentialRestrictions(last.id, { scopes: [] });
const unspent = await customer.listAddressUtxos(alice);
equal(await all(customer.iterateAddressUtxos(alice, { limit: 1 })), unspent.data);
equal(unspent.data.length > 1, true);
const quantities = (await all(customer.iterateAssetHolders(given("ASSET")))).map((each) => each.quantity);
equal(quantities, [2n ** 64n - 1n, 3n]);
const delegators = await all(customer.iteratePoolDelegators(given("POOL"), { limit: 1 }));
equal(delegators.map((each) => each.amount), [30n, 20n, 10n]);

// Usage, errors, and calls that end early.
equal(Array.isArray(await all(partner.iterateUserUsageBreakdown(user.id, { granularity: "day" }))), true);
equal((await partner.exportUsage({ format: "csv" })).startsWith("user_account_id,"), true);
const taken = await refusal(partner.createUser({ name: "Bob", external_id: "customer/1" }));
equal([taken.status, taken.code, typeof taken.requestId], [409, "external_id_in_use", "string"]);
const withoutKey = await failure(partner.getOwnKey());
equal(String(withoutKey), "TypeError: this operation needs apiKey, but the client has none");
const stopped = await failure(partner.getHealth({ signal: AbortSignal.abort(new Error("enough")) }));
equal(String(stopped), "Error: enough");
equal((await partner.deleteUser(user.id)).data.revoked_credentials, MANY - 1);
equal((await partner.getHealth()).data, { status: "alive" });
