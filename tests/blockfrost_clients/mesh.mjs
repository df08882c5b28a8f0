// A payment, a mint and a delegation with Mesh, on a test network.
//
//   URL=https://KEY@…/blockfrost/api/v0 MNEMONIC='…' RECEIVER=addr_test1… POOL=pool1… node mesh.mjs

import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { BlockfrostProvider, ForgeScript, MeshTxBuilder, MeshWallet, resolveScriptHash } from '@meshsdk/core';

const { URL, MNEMONIC, RECEIVER, POOL } = process.env;

const provider = new BlockfrostProvider(URL);
const wallet = walletFor('payment');
const address = await wallet.getChangeAddress();

console.log('payment   ', await payment());
console.log('mint      ', await mint());
const last = await delegation();
await new Promise((resolve) => provider.onTxConfirmed(last, resolve));
console.log('delegation', last);

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
