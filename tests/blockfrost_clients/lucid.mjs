// A payment, a mint and a delegation with Lucid Evolution, on the preview network.
//
//   URL=https://…/blockfrost/api/v0 PROJECT_ID=… MNEMONIC='…' RECEIVER=addr_test1… POOL=pool1… UNUSED=addr_test1…
//   BUSY=addr_test1… BUSY_OUTPUTS=… DATUMS=addr_test1… DATUM=… DATUM_HASH=… node lucid.mjs

import assert from 'node:assert/strict';
import {
  Blockfrost,
  Data,
  Lucid,
  fromText,
  mintingPolicyToId,
  paymentCredentialOf,
  scriptFromNative,
} from '@lucid-evolution/lucid';

const { URL, PROJECT_ID, MNEMONIC, RECEIVER, POOL } = process.env;
const { UNUSED, BUSY, BUSY_OUTPUTS, DATUMS, DATUM, DATUM_HASH } = process.env;

const provider = new Blockfrost(URL, PROJECT_ID);
const lucid = await Lucid(provider, 'Preview');
lucid.selectWallet.fromSeed(MNEMONIC);
const address = await lucid.wallet().address();

await questions();
console.log('payment   ', await payment());
console.log('mint      ', await mint());
console.log('delegation', await delegation());

/** Outputs, datums and the account. */
async function questions() {
  const busy = await lucid.utxosAt(BUSY);
  assert.equal(new Set(busy.map((utxo) => `${utxo.txHash}#${utxo.outputIndex}`)).size, Number(BUSY_OUTPUTS));
  assert.deepEqual(await lucid.utxosAt(paymentCredentialOf(BUSY)), busy);
  assert.deepEqual(await lucid.utxosAt(UNUSED), []);
  assert.deepEqual(await lucid.utxosAt(paymentCredentialOf(UNUSED)), []);
  const carrying = await lucid.utxosAt(DATUMS);
  assert.deepEqual(carrying.map(({ datum, datumHash }) => datum ?? datumHash).sort(), [DATUM, DATUM_HASH].sort());
  for (const utxo of carrying) assert.equal(await lucid.datumOf(utxo), Data.from(DATUM));
  const stake = await lucid.wallet().rewardAddress();
  assert.deepEqual(await lucid.delegationAt(stake), { poolId: null, rewards: 0n });
}

async function payment() {
  const hash = await send(lucid.newTx().pay.ToAddress(RECEIVER, { lovelace: 5_000_000n }));
  const [paid] = await provider.getUtxosByOutRef([{ txHash: hash, outputIndex: 0 }]);
  assert.deepEqual([paid.address, paid.assets], [RECEIVER, { lovelace: 5_000_000n }]);
  return hash;
}

async function mint() {
  const policy = scriptFromNative({ type: 'sig', keyHash: paymentCredentialOf(address).hash });
  const unit = mintingPolicyToId(policy) + fromText('Token');
  const hash = await send(lucid.newTx().mintAssets({ [unit]: 7n }).attach.MintingPolicy(policy));
  const [held] = await lucid.utxosAtWithUnit(address, unit);
  assert.deepEqual([held.txHash, held.assets[unit]], [hash, 7n]);
  assert.deepEqual(await lucid.utxosAtWithUnit(paymentCredentialOf(address), unit), [held]);
  return hash;
}

async function delegation() {
  const stake = await lucid.wallet().rewardAddress();
  const hash = await send(lucid.newTx().registerAndDelegate.ToPool(stake, POOL));
  assert.equal((await lucid.delegationAt(stake)).poolId, POOL);
  return hash;
}

/** Balances, evaluates, signs and submits; returns the hash once the transaction is in a block. */
async function send(builder) {
  const signed = await (await builder.complete()).sign.withWallet().complete();
  assert.deepEqual(await provider.evaluateTx(signed.toCBOR()), []);
  const hash = await signed.submit();
  assert.ok(await lucid.awaitTx(hash, 200));
  return hash;
}
