// A payment, a mint and a delegation with Blaze, on the preview network.
//
//   URL=https://…/blockfrost/api/v0 PROJECT_ID=… MNEMONIC='…' RECEIVER=addr_test1… POOL=pool1… UNUSED=addr_test1…
//   BUSY=addr_test1… BUSY_OUTPUTS=… DATUMS=addr_test1… DATUM=… DATUM_HASH=… node blaze.mjs

import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { Blockfrost } from '@blaze-cardano/query';
import { Blaze, Core, HotWallet } from '@blaze-cardano/sdk';
import { mnemonicToEntropy } from 'bip39';

const { URL, PROJECT_ID, MNEMONIC, RECEIVER, POOL } = process.env;
const { UNUSED, BUSY, BUSY_OUTPUTS, DATUMS, DATUM, DATUM_HASH } = process.env;

const provider = new Blockfrost({ network: 'cardano-preview', projectId: PROJECT_ID });
provider.url = `${URL}/`; // as the package writes its own, and then it adds a second slash
const entropy = Buffer.from(mnemonicToEntropy(MNEMONIC), 'hex');
const wallet = await HotWallet.fromMasterkey(Core.Bip32PrivateKey.fromBip39Entropy(entropy, '').hex(), provider);
const blaze = await Blaze.from(provider, wallet);
const address = await wallet.getChangeAddress();
const ofPayment = Core.Credential.fromCore(address.getProps().paymentPart);
const ofStake = Core.Credential.fromCore(address.getProps().delegationPart);

await questions();
console.log('payment   ', await payment());
console.log('mint      ', await mint());
console.log('delegation', await delegation());

async function questions() {
  const { costModels, ...parameters } = blaze.params;
  assert.deepEqual([...costModels.keys()], [0, 1, 2]); // PlutusV1 to V3
  assert.ok([...costModels.values()].every((costs) => costs.length > 100 && costs.every(Number.isSafeInteger)));
  assert.equal(Number(parameters.stakeKeyDeposit), 2_000_000);
  assert.ok(parameters.prices.memory > 0 && parameters.prices.steps > 0 && parameters.minFeeReferenceScripts.base > 0);

  const busy = await provider.getUnspentOutputs(Core.Address.fromBech32(BUSY));
  assert.equal(new Set(busy.map((utxo) => utxo.input().toCbor())).size, Number(BUSY_OUTPUTS));
  const carrying = await provider.getUnspentOutputs(Core.Address.fromBech32(DATUMS));
  const datums = carrying.map((utxo) => utxo.output().datum());
  assert.deepEqual(datums.map((datum) => datum.asInlineData()?.toCbor()).filter(Boolean), [DATUM]);
  assert.deepEqual(datums.map((datum) => datum.asDataHash()).filter(Boolean), [DATUM_HASH]);
  assert.equal((await provider.resolveDatum(DATUM_HASH)).toCbor(), DATUM);
  // NOTE: the package throws at an address that was never used, for which Blockfrost answers 404. It asks for a
  // credential as its enterprise address, and so misses all other addresses.
  const unused = provider.getUnspentOutputs(Core.Address.fromBech32(UNUSED));
  await assert.rejects(unused, /Blockfrost threw "The requested component has not been found."/);
  await assert.rejects(provider.resolveDatum('00'.repeat(32)), /has not been found/);
}

async function payment() {
  const hash = await send(blaze.newTransaction().payLovelace(Core.Address.fromBech32(RECEIVER), 5_000_000n));
  const [paid] = await provider.resolveUnspentOutputs([new Core.TransactionInput(hash, 0n)]);
  assert.deepEqual([paid.output().address().toBech32(), paid.output().amount().coin()], [RECEIVER, 5_000_000n]);
  return hash;
}

async function mint() {
  const script = Core.NativeScript.newScriptPubkey(new Core.ScriptPubkey(ofPayment.toCore().hash));
  const policy = Core.PolicyId(script.hash());
  const name = Core.AssetName(Buffer.from('Token').toString('hex'));
  const builder = blaze.newTransaction().addMint(policy, new Map([[name, 7n]]));
  const hash = await send(builder.provideScript(Core.Script.newNativeScript(script)));
  const unit = Core.AssetId.fromParts(policy, name);
  const [held] = await provider.getUnspentOutputsWithAsset(address, unit);
  assert.equal(held.input().transactionId(), hash);
  assert.equal(held.output().amount().multiasset().get(unit), 7n);
  assert.equal((await provider.getUnspentOutputByNFT(unit)).toCbor(), held.toCbor());
  return hash;
}

async function delegation() {
  const builder = blaze.newTransaction().addRegisterStake(ofStake).addDelegation(ofStake, POOL);
  // NOTE: the package signs with the stake key only if asked, though the certificate needs it.
  return send(builder, true);
}

/** Balances, signs and submits; returns the hash once the transaction is in a block. */
async function send(builder, withStakeKey = false) {
  const tx = await builder.complete();
  const witnesses = tx.witnessSet();
  witnesses.setVkeys((await wallet.signTransaction(tx, true, withStakeKey)).vkeys());
  tx.setWitnessSet(witnesses);
  const hash = await provider.postTransactionToChain(tx);
  assert.equal(hash, tx.getId());
  while (!(await provider.awaitTransactionConfirmation(hash))) await setTimeout(200);
  return hash;
}
