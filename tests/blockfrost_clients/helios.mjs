// A payment, a mint and a delegation with Helios' tx-utils, on the preview network.
//
//   URL=https://…/blockfrost/api/v0 PROJECT_ID=… MNEMONIC='…' RECEIVER=addr_test1… POOL=pool1… UNUSED=addr_test1…
//   BUSY=addr_test1… BUSY_OUTPUTS=… DATUMS=addr_test1… DATUM=… node helios.mjs

import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { bytesToHex, encodeUtf8 } from '@helios-lang/codec-utils';
import { decodeBech32 } from '@helios-lang/crypto';
import {
  hashNativeScript,
  makeAddress,
  makeAssetClass,
  makeMintingPolicyHash,
  makeRegistrationDCert,
  makeSigScript,
  makeTxOutputId,
  makeValue,
} from '@helios-lang/ledger';
import {
  SubmissionExpiryError,
  makeBlockfrostV0Client,
  makeRootPrivateKey,
  makeSimpleWallet,
  makeTxBuilder,
} from '@helios-lang/tx-utils';
import { mnemonicToEntropy } from 'bip39';

const { URL, PROJECT_ID, MNEMONIC, RECEIVER, POOL, UNUSED, BUSY, BUSY_OUTPUTS, DATUMS, DATUM } = process.env;

// The package takes no URL: what it sends to Blockfrost is sent to this one.
const THEIRS = 'https://cardano-preview.blockfrost.io/api/v0';
const { fetch } = globalThis;
globalThis.fetch = (url, options) => fetch(String(url).replace(THEIRS, URL), options);

const client = makeBlockfrostV0Client('preview', PROJECT_ID);
const key = makeRootPrivateKey([...Buffer.from(mnemonicToEntropy(MNEMONIC), 'hex')]);
const wallet = makeSimpleWallet(key, client);

await questions();
console.log('payment   ', await payment());
console.log('mint      ', await mint());
console.log('delegation', await delegation());
await expiry();

async function questions() {
  const parameters = await networkParameters();
  assert.deepEqual([parameters.stakeAddrDeposit, parameters.collateralPercentage], [2_000_000, 150]);
  assert.ok(parameters.refTipSlot > 0 && parameters.txFeePerByte > 0 && parameters.refScriptsFeePerByte > 0);
  assert.ok((await client.latestEpoch).end_time > parameters.refTipTime / 1000);
  const busy = await client.getUtxos(makeAddress(BUSY));
  assert.equal(new Set(busy.map(({ id }) => id.toString())).size, Number(BUSY_OUTPUTS));
  assert.deepEqual(await client.getUtxos(makeAddress(UNUSED)), []);
  assert.deepEqual(await client.getAddressTxs(makeAddress(UNUSED)), []);
  const carrying = await client.getUtxos(makeAddress(DATUMS));
  // NOTE: the package reads inline datums only, and shows an output with a datum hash as if it had no datum.
  assert.deepEqual(carrying.map(({ datum }) => datum && bytesToHex(datum.data.toCbor())), [DATUM, undefined]);
  assert.equal(await client.hasUtxo(carrying[0].id), true);
}

async function payment() {
  const id = await send(makeTxBuilder({ isMainnet: false }).payUnsafe(makeAddress(RECEIVER), makeValue(5_000_000n)));
  const paid = await client.getUtxo(makeTxOutputId(id, 0));
  assert.deepEqual([paid.address.toString(), paid.value.lovelace], [RECEIVER, 5_000_000n]);
  const { inputs, outputs } = await client.getTxInfo(id);
  assert.equal(outputs[0].value.lovelace, 5_000_000n);
  const spent = inputs[0].id;
  assert.equal(await client.hasUtxo(spent), false);
  await assert.rejects(client.getUtxo(spent), ({ message }) => message.includes('already spent'));
  return id.toHex();
}

async function mint() {
  const script = makeSigScript(wallet.spendingPubKeyHash);
  const policy = makeMintingPolicyHash(hashNativeScript(script));
  const name = encodeUtf8('Token');
  const builder = makeTxBuilder({ isMainnet: false }).attachNativeScript(script);
  const id = await send(builder.mintPolicyTokensUnsafe(policy, [[name, 7]]));
  const [held] = await client.getUtxosWithAssetClass(wallet.address, makeAssetClass(policy, name));
  assert.equal(held.id.txId.toHex(), id.toHex());
  assert.equal(held.value.assets.getAssetClassQuantity(makeAssetClass(policy, name)), 7n);
  const [{ address, quantity }] = await client.getAddressesWithAssetClass(makeAssetClass(policy, name));
  assert.deepEqual([address.toString(), quantity], [wallet.address.toString(), 7n]);
  return id.toHex();
}

async function delegation() {
  const [, pool] = decodeBech32(POOL);
  const builder = makeTxBuilder({ isMainnet: false }).addDCert(makeRegistrationDCert(wallet.stakingPubKeyHash));
  const id = await send(builder.delegateWithoutRedeemer(wallet.stakingPubKeyHash, pool), key.deriveStakingKey());
  const txs = await client.getAddressTxs(wallet.address);
  assert.equal(txs.at(-1).id.toHex(), id.toHex());
  assert.ok(txs.at(-1).blockHeight >= txs.at(-2).blockHeight && txs.at(-1).blockTime > 0);
  return id.toHex();
}

/** A transaction that is no longer valid is refused in words that the package recognizes. */
async function expiry() {
  const builder = makeTxBuilder({ isMainnet: false }).payUnsafe(makeAddress(RECEIVER), makeValue(5_000_000n));
  const tx = await built(builder.validToSlot((await networkParameters()).refTipSlot - 5));
  tx.addSignatures(await wallet.signTx(tx), false);
  await assert.rejects(client.submitTx(tx), SubmissionExpiryError);
}

/** Balances, signs and submits; returns the id once the transaction is in a block. */
async function send(builder, ...cosigners) {
  const tx = await built(builder);
  tx.addSignatures([...(await wallet.signTx(tx)), ...cosigners.map((cosigner) => cosigner.sign(tx.body.hash()))]);
  const id = await client.submitTx(tx);
  assert.equal(id.toHex(), tx.id().toHex());
  while (!(await client.hasTx(id))) await setTimeout(200);
  assert.equal((await client.getTx(id)).id().toHex(), id.toHex());
  return id;
}

async function built(builder) {
  return builder.buildUnsafe({
    changeAddress: wallet.address,
    spareUtxos: wallet.utxos,
    networkParams: networkParameters(),
  });
}

async function networkParameters() {
  return client.parameters;
}
