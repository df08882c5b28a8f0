// A payment, a mint and a delegation with @blockfrost/blockfrost-js and cardano-serialization-lib, on a test network.
//
//   URL=https://…/blockfrost/api/v0 PROJECT_ID=… MNEMONIC='…' RECEIVER=addr_test1… POOL=pool1… UNUSED=addr_test1…
//   BUSY=addr_test1… BUSY_OUTPUTS=… DATUMS=addr_test1… DATUM=… DATUM_HASH=… node blockfrost-js.mjs

import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { BlockFrostAPI, BlockfrostServerError } from '@blockfrost/blockfrost-js';
import * as build from './serialization-lib.mjs';

const { URL, PROJECT_ID, MNEMONIC, RECEIVER, POOL } = process.env;
const { UNUSED, BUSY, BUSY_OUTPUTS, DATUMS, DATUM, DATUM_HASH } = process.env;

const api = new BlockFrostAPI({ customBackend: URL, projectId: PROJECT_ID, network: 'preview' });
const wallet = build.walletOf(MNEMONIC);
const address = wallet.address.to_bech32();

await questions();
console.log('payment   ', await payment());
console.log('mint      ', await mint());
console.log('delegation', await delegation());

/** Outputs of addresses and of a credential, datums and the history. */
async function questions() {
  const busy = await api.addressesUtxosAll(BUSY);
  assert.equal(new Set(busy.map((each) => `${each.tx_hash}#${each.output_index}`)).size, Number(BUSY_OUTPUTS));
  assert.deepEqual(await api.addressesUtxosAll(build.credentialOf(BUSY)), busy);
  for (const name of [UNUSED, build.credentialOf(UNUSED)]) {
    await assert.rejects(api.addressesUtxos(name), { status_code: 404 });
  }
  const carrying = await api.addressesUtxos(DATUMS);
  assert.deepEqual(carrying.map((each) => each.inline_datum).filter(Boolean), [DATUM]);
  assert.deepEqual(carrying.map((each) => each.data_hash), [DATUM_HASH, DATUM_HASH]);
  assert.deepEqual(await api.scriptsDatumCbor(DATUM_HASH), { cbor: DATUM });
  const [paid] = await api.addressesTransactionsAll(BUSY);
  assert.deepEqual(new Set(busy.map((each) => each.tx_hash)), new Set([paid.tx_hash]));
}

async function payment() {
  const builder = await newBuilder();
  build.pay(builder, RECEIVER, 5_000_000n);
  const hash = await send(builder);
  const { outputs } = await api.txsUtxos(hash);
  assert.deepEqual(outputs[0].amount, [{ unit: 'lovelace', quantity: '5000000' }]);
  assert.equal(outputs[0].address, RECEIVER);
  return hash;
}

async function mint() {
  const builder = await newBuilder();
  const unit = build.mint(builder, wallet);
  const hash = await send(builder);
  const [held] = await api.addressesUtxosAsset(address, unit);
  assert.equal(held.tx_hash, hash);
  assert.equal(held.amount.find((amount) => amount.unit === unit).quantity, '7');
  return hash;
}

async function delegation() {
  const { key_deposit } = await api.epochsLatestParameters();
  const builder = await newBuilder();
  build.delegate(builder, wallet, POOL, key_deposit);
  const hash = await send(builder);
  const found = await api.txs(hash);
  assert.deepEqual([found.stake_cert_count, found.delegation_count, found.deposit], [1, 1, key_deposit]);
  const [delegated] = await api.txsDelegations(hash);
  assert.equal(delegated.pool_id, POOL);
  return hash;
}

/** A builder with the parameters of the network. */
async function newBuilder() {
  return build.builderFor(await api.epochsLatestParameters());
}

/** Balances, signs, evaluates and submits; returns the hash once the transaction is in a block. */
async function send(builder) {
  const tx = build.signed(builder, wallet, await api.addressesUtxosAll(address));
  const evaluation = await api.utilsTxsEvaluate(tx.to_hex());
  assert.deepEqual(evaluation.result, { EvaluationResult: {} });
  const additional = await api.utilsTxsEvaluateUtxos(tx.to_hex(), []);
  assert.deepEqual(additional.result, { EvaluationResult: {} });
  const hash = await api.txSubmit(tx.to_hex());
  assert.equal(hash, tx.transaction_hash().to_hex());
  await confirmed(hash);
  return hash;
}

async function confirmed(hash) {
  for (;;) {
    try {
      return await api.txs(hash);
    } catch (error) {
      if (!(error instanceof BlockfrostServerError && error.status_code === 404)) throw error;
    }
    await setTimeout(200);
  }
}
