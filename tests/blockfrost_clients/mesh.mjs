// A payment, a mint and a delegation with Mesh, on a test network.
//
//   URL=https://KEY@…/blockfrost/api/v0 MNEMONIC='…' RECEIVER=addr_test1… POOL=pool1… UNUSED=addr_test1… BUSY=addr_test1…
//   BUSY_OUTPUTS=… DATUMS=addr_test1… DATUM=… DATUM_HASH=… node mesh.mjs

import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { BlockfrostProvider, ForgeScript, MeshTxBuilder, MeshWallet, resolveScriptHash } from '@meshsdk/core';

const { URL, MNEMONIC, RECEIVER, POOL } = process.env;
const { UNUSED, BUSY, BUSY_OUTPUTS, DATUMS, DATUM, DATUM_HASH } = process.env;

const provider = new BlockfrostProvider(URL);
const wallet = walletFor('payment');
const address = await wallet.getChangeAddress();

await questions();
console.log('payment   ', await payment());
console.log('mint      ', await mint());
const last = await delegation();
await new Promise((resolve) => provider.onTxConfirmed(last, resolve));
console.log('delegation', last);

/** Outputs, their datums, the account and the history. */
async function questions() {
  const busy = await provider.fetchAddressUTxOs(BUSY);
  assert.equal(new Set(busy.map(({ input }) => `${input.txHash}#${input.outputIndex}`)).size, Number(BUSY_OUTPUTS));
  assert.ok(busy.every(({ output }) => output.address === BUSY));
  assert.deepEqual(await provider.fetchAddressUTxOs(UNUSED), []);
  const carrying = (await provider.fetchAddressUTxOs(DATUMS)).map(({ output }) => output);
  assert.deepEqual(carrying.map(({ plutusData }) => plutusData).filter(Boolean), [DATUM]);
  assert.deepEqual(carrying.map(({ dataHash }) => dataHash), [DATUM_HASH, DATUM_HASH]);
  assert.equal((await provider.fetchAddressTxs(BUSY)).length, 1);
  const [stake] = await wallet.getRewardAddresses();
  const { active, rewards, balance } = await provider.fetchAccountInfo(stake);
  assert.deepEqual([active, rewards, balance], [false, '0', '100000000']);
}

async function payment() {
  const amount = [{ unit: 'lovelace', quantity: '5000000' }];
  const hash = await send((await newBuilder()).txOut(RECEIVER, amount));
  const [paid] = await provider.fetchUTxOs(hash, 0);
  assert.deepEqual([paid.output.address, paid.output.amount], [RECEIVER, amount]);
  return hash;
}

async function mint() {
  const script = ForgeScript.withOneSignature(address);
  const policy = resolveScriptHash(script);
  const name = Buffer.from('Token').toString('hex');
  const hash = await send((await newBuilder()).mint('7', policy, name).mintingScript(script));
  const [held] = await provider.fetchAddressUTxOs(address, policy + name);
  assert.equal(held.input.txHash, hash);
  assert.equal(held.output.amount.find(({ unit }) => unit === policy + name).quantity, '7');
  return hash;
}

async function delegation() {
  const [stake] = await wallet.getRewardAddresses();
  const { keyDeposit } = await provider.fetchProtocolParameters();
  const builder = (await newBuilder()).registerStakeCertificate(stake).delegateStakeCertificate(stake, POOL);
  const hash = await send(builder, walletFor('stake'));
  assert.equal((await provider.fetchAccountInfo(stake)).poolId, POOL);
  assert.equal((await provider.fetchTxInfo(hash)).deposit, String(keyDeposit));
  return hash;
}

/** A builder that selects from the unspent outputs of the wallet. */
async function newBuilder() {
  const params = await provider.fetchProtocolParameters();
  return new MeshTxBuilder({ fetcher: provider, submitter: provider, evaluator: provider, params })
    .changeAddress(address)
    .selectUtxosFrom(await wallet.getUtxos());
}

/** Balances, evaluates, signs and submits; returns the hash once the transaction is in a block. */
async function send(builder, ...cosigners) {
  const unsigned = await builder.complete();
  assert.deepEqual(await provider.evaluateTx(unsigned), []);
  let signed = await wallet.signTx(unsigned);
  for (const cosigner of cosigners) signed = await cosigner.signTx(signed, true);
  const hash = await provider.submitTx(signed);
  while (!(await provider.fetchTxInfo(hash).catch(() => null))) await setTimeout(200);
  return hash;
}

/** A wallet of the mnemonic that signs with its payment key or with its stake key. */
function walletFor(accountType) {
  const key = { type: 'mnemonic', words: MNEMONIC.split(' ') };
  return new MeshWallet({ networkId: 0, fetcher: provider, submitter: provider, key, accountType });
}
