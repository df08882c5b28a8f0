// A payment, a mint and a delegation with lucid-cardano 0.10, Lucid Evolution's predecessor, on the preview network.
//
//   URL=https://…/blockfrost/api/v0 PROJECT_ID=… MNEMONIC='…' RECEIVER=addr_test1… POOL=pool1… UNUSED=addr_test1…
//   BUSY=addr_test1… BUSY_OUTPUTS=… DATUMS=addr_test1… DATUM=… DATUM_HASH=… node lucid-cardano.mjs

import assert from 'node:assert/strict';
import { Blockfrost, Data, Lucid, fromText } from 'lucid-cardano';

const { URL, PROJECT_ID, MNEMONIC, RECEIVER, POOL } = process.env;
const { UNUSED, BUSY, BUSY_OUTPUTS, DATUMS, DATUM, DATUM_HASH } = process.env;

const provider = new Blockfrost(URL, PROJECT_ID);
const lucid = await Lucid.new(provider, 'Preview');
lucid.selectWalletFromSeed(MNEMONIC);
const address = await lucid.wallet.address();
const stake = await lucid.wallet.rewardAddress();
const { paymentCredential } = lucid.utils.getAddressDetails(address);

await questions();
console.log('payment   ', await payment());
console.log('mint      ', await mint());
console.log('delegation', await delegation());
process.exit(0); // NOTE: the package's WebSocket and WebCrypto keep the process alive

async function questions() {
  const parameters = await provider.getProtocolParameters();
  assert.deepEqual([parameters.keyDeposit, parameters.maxCollateralInputs], [2_000_000n, 3]);
  const told = await fetch(`${URL}/epochs/latest/parameters`, { headers: { project_id: PROJECT_ID } });
  const raw = (await told.json()).cost_models_raw;
  for (const language of ['PlutusV1', 'PlutusV2', 'PlutusV3']) {
    assert.deepEqual(Object.values(parameters.costModels[language]), raw[language]);
  }
  const busy = await lucid.utxosAt(BUSY);
  assert.equal(new Set(busy.map((utxo) => `${utxo.txHash}#${utxo.outputIndex}`)).size, Number(BUSY_OUTPUTS));
  const ofBusy = await lucid.utxosAt(lucid.utils.getAddressDetails(BUSY).paymentCredential);
  assert.deepEqual(ofBusy, busy);
  assert.deepEqual(await lucid.utxosAt(UNUSED), []);
  assert.deepEqual(await lucid.utxosAt(lucid.utils.getAddressDetails(UNUSED).paymentCredential), []);
  const carrying = await lucid.utxosAt(DATUMS);
  assert.deepEqual(carrying.map(({ datum, datumHash }) => datum ?? datumHash).sort(), [DATUM, DATUM_HASH].sort());
  for (const utxo of carrying) assert.equal(await lucid.datumOf(utxo), Data.from(DATUM));
  assert.deepEqual(await lucid.delegationAt(stake), { poolId: null, rewards: 0n });
}

async function payment() {
  const hash = await send(lucid.newTx().payToAddress(RECEIVER, { lovelace: 5_000_000n }));
  const [paid] = await lucid.utxosByOutRef([{ txHash: hash, outputIndex: 0 }]);
  assert.deepEqual([paid.address, paid.assets], [RECEIVER, { lovelace: 5_000_000n }]);
  return hash;
}

async function mint() {
  const policy = lucid.utils.nativeScriptFromJson({ type: 'sig', keyHash: paymentCredential.hash });
  const unit = lucid.utils.mintingPolicyToId(policy) + fromText('Token');
  const hash = await send(lucid.newTx().mintAssets({ [unit]: 7n }).attachMintingPolicy(policy));
  const [held] = await lucid.utxosAtWithUnit(address, unit);
  assert.deepEqual([held.txHash, held.assets[unit]], [hash, 7n]);
  assert.deepEqual(await lucid.utxosAtWithUnit(paymentCredential, unit), [held]);
  assert.equal((await lucid.utxoByUnit(unit)).txHash, hash);
  return hash;
}

async function delegation() {
  const hash = await send(lucid.newTx().registerStake(stake).delegateTo(stake, POOL));
  assert.deepEqual(await lucid.delegationAt(stake), { poolId: POOL, rewards: 0n });
  return hash;
}

/** Balances, signs and submits; returns the hash once the transaction is in a block. */
async function send(builder) {
  const signed = await (await builder.complete()).sign().complete();
  const hash = await signed.submit();
  assert.equal(hash, signed.toHash());
  assert.ok(await lucid.awaitTx(hash, 200));
  return hash;
}
