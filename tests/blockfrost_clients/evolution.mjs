// A payment, a mint and a delegation with Evolution SDK, on the preview network.
//
//   URL=https://…/blockfrost/api/v0 PROJECT_ID=… MNEMONIC='…' RECEIVER=addr_test1… POOL=pool1… UNUSED=addr_test1…
//   BUSY=addr_test1… BUSY_OUTPUTS=… DATUMS=addr_test1… DATUM=… DATUM_HASH=… node evolution.mjs

import assert from 'node:assert/strict';
import {
  Address,
  Assets,
  Client,
  Data,
  DatumHash,
  NativeScripts,
  PoolKeyHash,
  ScriptHash,
  TransactionHash,
  TransactionInput,
  preview,
} from '@evolution-sdk/evolution';

const { URL, PROJECT_ID, MNEMONIC, RECEIVER, POOL } = process.env;
const { UNUSED, BUSY, BUSY_OUTPUTS, DATUMS, DATUM, DATUM_HASH } = process.env;

const client = Client.make(preview)
  .withBlockfrost({ baseUrl: URL, projectId: PROJECT_ID })
  .withSeed({ mnemonic: MNEMONIC, accountIndex: 0 });
const address = await client.address();
const stake = await client.rewardAddress();

await questions();
console.log('payment   ', await payment());
console.log('mint      ', await mint());
console.log('delegation', await delegation());

async function questions() {
  const parameters = await client.getProtocolParameters();
  assert.deepEqual([parameters.keyDeposit, parameters.maxCollateralInputs], [2_000_000n, 3]);
  for (const costs of Object.values(parameters.costModels)) assert.ok(Object.keys(costs).length > 100);
  const busy = await client.getUtxos(Address.fromBech32(BUSY));
  const places = busy.map(({ transactionId, index }) => `${TransactionHash.toHex(transactionId)}#${index}`);
  assert.equal(new Set(places).size, Number(BUSY_OUTPUTS));
  assert.deepEqual(await client.getUtxos(Address.fromBech32(BUSY).paymentCredential), busy);
  assert.deepEqual(await client.getUtxos(Address.fromBech32(UNUSED)), []);
  assert.deepEqual(await client.getUtxos(Address.fromBech32(UNUSED).paymentCredential), []);
  const carrying = await client.getUtxos(Address.fromBech32(DATUMS));
  assert.deepEqual(carrying.map(({ datumOption }) => Data.toCBORHex(datumOption.data)), [DATUM, DATUM]);
  assert.equal(Data.toCBORHex(await client.getDatum(DatumHash.fromHex(DATUM_HASH))), DATUM);
  await delegated(undefined);
}

async function payment() {
  const to = Address.fromBech32(RECEIVER);
  const hash = await send(client.newTx().payToAddress({ address: to, assets: Assets.fromLovelace(5_000_000n) }));
  const input = new TransactionInput.TransactionInput({ transactionId: hash, index: 0n });
  const [paid] = await client.getUtxosByOutRef([input]);
  assert.deepEqual([Address.toBech32(paid.address), Assets.lovelaceOf(paid.assets)], [RECEIVER, 5_000_000n]);
  return TransactionHash.toHex(hash);
}

async function mint() {
  const script = NativeScripts.makeScriptPubKey(address.paymentCredential.hash);
  const policy = ScriptHash.toHex(ScriptHash.fromScript(script));
  const name = Buffer.from('Token').toString('hex');
  const assets = Assets.fromHexStrings(policy, name, 7n);
  const hash = await send(client.newTx().mintAssets({ assets }).attachScript({ script }));
  const [held] = await client.getUtxosWithUnit(address, policy + name);
  assert.equal(TransactionHash.toHex(held.transactionId), TransactionHash.toHex(hash));
  assert.equal(Assets.getByUnit(held.assets, policy + name), 7n);
  assert.deepEqual(await client.getUtxosWithUnit(address.paymentCredential, policy + name), [held]);
  const found = await client.getUtxoByUnit(policy + name);
  assert.equal(found.index, held.index);
  return TransactionHash.toHex(hash);
}

async function delegation() {
  const staking = { stakeCredential: address.stakingCredential, poolKeyHash: PoolKeyHash.fromBech32(POOL) };
  const hash = await send(client.newTx().registerAndDelegateTo(staking));
  await delegated(POOL);
  return TransactionHash.toHex(hash);
}

/** The account has no rewards, and is delegated as expected. */
async function delegated(pool) {
  const told = await fetch(`${URL}/accounts/${stake}`, { headers: { project_id: PROJECT_ID } });
  const { reserves_sum: kept } = await told.json();
  if (kept === null) return assert.rejects(client.getDelegation(stake)); // the package takes no null there
  const { poolId, rewards } = await client.getDelegation(stake);
  assert.deepEqual([poolId ? PoolKeyHash.toBech32(poolId) : undefined, rewards], [pool, 0n]);
}

/** Balances, evaluates, signs and submits; returns the hash once the transaction is in a block. */
async function send(builder) {
  const built = await builder.build();
  assert.deepEqual(await client.evaluateTx(await built.toTransactionWithFakeWitnesses()), []);
  const hash = await (await built.sign()).submit();
  assert.ok(await client.awaitTx(hash, 200));
  return hash;
}
