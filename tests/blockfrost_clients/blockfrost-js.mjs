// A payment, a mint and a delegation with @blockfrost/blockfrost-js and cardano-serialization-lib, on a test network.
//
//   URL=https://…/blockfrost/api/v0 PROJECT_ID=… MNEMONIC='…' RECEIVER=addr_test1… POOL=pool1… node blockfrost-js.mjs

import assert from 'node:assert/strict';
import { setTimeout } from 'node:timers/promises';
import { BlockFrostAPI, BlockfrostServerError } from '@blockfrost/blockfrost-js';
import * as CSL from '@emurgo/cardano-serialization-lib-nodejs';
import { mnemonicToEntropy } from 'bip39';

const { URL, PROJECT_ID, MNEMONIC, RECEIVER, POOL } = process.env;
const ADA = 1_000_000n;

const api = new BlockFrostAPI({ customBackend: URL, projectId: PROJECT_ID, network: 'preview' });
const wallet = walletOf(MNEMONIC);

console.log('payment   ', await payment());
console.log('mint      ', await mint());
console.log('delegation', await delegation());

async function payment() {
  const builder = await newBuilder();
  builder.add_output(CSL.TransactionOutput.new(CSL.Address.from_bech32(RECEIVER), lovelace(5n * ADA)));
  const hash = await send(builder);
  const { outputs } = await api.txsUtxos(hash);
  assert.deepEqual(outputs[0].amount, [{ unit: 'lovelace', quantity: '5000000' }]);
  assert.equal(outputs[0].address, RECEIVER);
  return hash;
}

async function mint() {
  const script = CSL.NativeScript.new_script_pubkey(CSL.ScriptPubkey.new(wallet.payment.to_public().hash()));
  const name = CSL.AssetName.new(Buffer.from('Token'));
  const builder = await newBuilder();
  const output = CSL.TransactionOutputBuilder.new().with_address(wallet.address).next();
  builder.add_mint_asset_and_output_min_required_coin(script, name, CSL.Int.new_i32(7), output);
  const hash = await send(builder);
  const unit = script.hash().to_hex() + Buffer.from('Token').toString('hex');
  const [held] = await api.addressesUtxosAsset(wallet.address.to_bech32(), unit);
  assert.equal(held.tx_hash, hash);
  assert.equal(held.amount.find((amount) => amount.unit === unit).quantity, '7');
  return hash;
}

async function delegation() {
  const { key_deposit } = await api.epochsLatestParameters();
  const credential = CSL.Credential.from_keyhash(wallet.stake.to_public().hash());
  const deposit = CSL.BigNum.from_str(key_deposit);
  const certificates = CSL.CertificatesBuilder.new();
  certificates.add(
    CSL.Certificate.new_reg_cert(CSL.StakeRegistration.new_with_explicit_deposit(credential, deposit)),
  );
  const pool = CSL.Ed25519KeyHash.from_bech32(POOL);
  certificates.add(CSL.Certificate.new_stake_delegation(CSL.StakeDelegation.new(credential, pool)));
  const builder = await newBuilder();
  builder.set_certs_builder(certificates);
  const hash = await send(builder);
  const found = await api.txs(hash);
  assert.deepEqual([found.stake_cert_count, found.delegation_count, found.deposit], [1, 1, key_deposit]);
  const [delegated] = await api.txsDelegations(hash);
  assert.equal(delegated.pool_id, POOL);
  return hash;
}

/** A builder with the parameters of the network and the unspent outputs of the wallet. */
async function newBuilder() {
  const parameters = await api.epochsLatestParameters();
  const config = CSL.TransactionBuilderConfigBuilder.new()
    .fee_algo(CSL.LinearFee.new(big(parameters.min_fee_a), big(parameters.min_fee_b)))
    .pool_deposit(big(parameters.pool_deposit))
    .key_deposit(big(parameters.key_deposit))
    .coins_per_utxo_byte(big(parameters.coins_per_utxo_size))
    .max_value_size(Number(parameters.max_val_size))
    .max_tx_size(parameters.max_tx_size)
    .build();
  return CSL.TransactionBuilder.new(config);
}

/** Balances, signs, evaluates and submits; returns the hash once the transaction is in a block. */
async function send(builder) {
  const unspent = CSL.TransactionUnspentOutputs.new();
  for (const utxo of await api.addressesUtxosAll(wallet.address.to_bech32())) {
    const input = CSL.TransactionInput.new(CSL.TransactionHash.from_hex(utxo.tx_hash), utxo.output_index);
    unspent.add(CSL.TransactionUnspentOutput.new(input, CSL.TransactionOutput.new(wallet.address, value(utxo.amount))));
  }
  const change = CSL.ChangeConfig.new(wallet.address);
  builder.add_inputs_from_and_change(unspent, CSL.CoinSelectionStrategyCIP2.LargestFirstMultiAsset, change);
  const tx = CSL.FixedTransaction.from_bytes(builder.build_tx().to_bytes());
  tx.sign_and_add_vkey_signature(wallet.payment);
  if (builder.get_deposit().compare(big(0)) > 0) tx.sign_and_add_vkey_signature(wallet.stake);

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

/** The first address of a mnemonic (CIP-1852), its payment key and its stake key. */
function walletOf(mnemonic) {
  const harden = (index) => 0x80000000 + index;
  const root = CSL.Bip32PrivateKey.from_bip39_entropy(Buffer.from(mnemonicToEntropy(mnemonic), 'hex'), Buffer.alloc(0));
  const account = root.derive(harden(1852)).derive(harden(1815)).derive(harden(0));
  const [payment, stake] = [0, 2].map((role) => account.derive(role).derive(0).to_raw_key());
  const [ofPayment, ofStake] = [payment, stake].map((key) => CSL.Credential.from_keyhash(key.to_public().hash()));
  const testnet = CSL.NetworkInfo.testnet_preview().network_id();
  return { payment, stake, address: CSL.BaseAddress.new(testnet, ofPayment, ofStake).to_address() };
}

function value(amounts) {
  const assets = CSL.MultiAsset.new();
  for (const { unit, quantity } of amounts.filter((amount) => amount.unit !== 'lovelace')) {
    const name = CSL.AssetName.new(Buffer.from(unit.slice(56), 'hex'));
    assets.set_asset(CSL.ScriptHash.from_hex(unit.slice(0, 56)), name, big(quantity));
  }
  return CSL.Value.new_with_assets(big(amounts.find((amount) => amount.unit === 'lovelace').quantity), assets);
}

function lovelace(amount) {
  return CSL.Value.new(big(amount));
}

function big(number) {
  return CSL.BigNum.from_str(String(number));
}
