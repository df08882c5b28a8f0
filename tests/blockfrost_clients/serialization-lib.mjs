// Building and signing with cardano-serialization-lib, for programs whose client of Blockfrost does neither.

import * as CSL from '@emurgo/cardano-serialization-lib-nodejs';
import { mnemonicToEntropy } from 'bip39';

/** The first address of a mnemonic (CIP-1852), its payment key and its stake key. */
export function walletOf(mnemonic) {
  const harden = (index) => 0x80000000 + index;
  const root = CSL.Bip32PrivateKey.from_bip39_entropy(Buffer.from(mnemonicToEntropy(mnemonic), 'hex'), Buffer.alloc(0));
  const account = root.derive(harden(1852)).derive(harden(1815)).derive(harden(0));
  const [payment, stake] = [0, 2].map((role) => account.derive(role).derive(0).to_raw_key());
  const [ofPayment, ofStake] = [payment, stake].map((key) => CSL.Credential.from_keyhash(key.to_public().hash()));
  const testnet = CSL.NetworkInfo.testnet_preview().network_id();
  return {
    payment,
    stake,
    address: CSL.BaseAddress.new(testnet, ofPayment, ofStake).to_address(),
    rewardAddress: CSL.RewardAddress.new(testnet, ofStake).to_address().to_bech32(),
  };
}

/** A builder for Blockfrost's parameters. */
export function builderFor(parameters) {
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

export function pay(builder, address, lovelace) {
  const value = CSL.Value.new(big(lovelace));
  builder.add_output(CSL.TransactionOutput.new(CSL.Address.from_bech32(address), value));
}

/** Mints 7 tokens with a native script that requires the payment key; returns their unit. */
export function mint(builder, wallet) {
  const script = CSL.NativeScript.new_script_pubkey(CSL.ScriptPubkey.new(wallet.payment.to_public().hash()));
  const name = CSL.AssetName.new(Buffer.from('Token'));
  const output = CSL.TransactionOutputBuilder.new().with_address(wallet.address).next();
  builder.add_mint_asset_and_output_min_required_coin(script, name, CSL.Int.new_i32(7), output);
  return script.hash().to_hex() + Buffer.from('Token').toString('hex');
}

/** Registers the stake key and delegates it. */
export function delegate(builder, wallet, pool, keyDeposit) {
  const credential = CSL.Credential.from_keyhash(wallet.stake.to_public().hash());
  const certificates = CSL.CertificatesBuilder.new();
  certificates.add(
    CSL.Certificate.new_reg_cert(CSL.StakeRegistration.new_with_explicit_deposit(credential, big(keyDeposit))),
  );
  const delegation = CSL.StakeDelegation.new(credential, CSL.Ed25519KeyHash.from_bech32(pool));
  certificates.add(CSL.Certificate.new_stake_delegation(delegation));
  builder.set_certs_builder(certificates);
}

/** Balances with unspent outputs of the wallet in Blockfrost's form, and signs. */
export function signed(builder, wallet, utxos) {
  const unspent = CSL.TransactionUnspentOutputs.new();
  for (const utxo of utxos) {
    const input = CSL.TransactionInput.new(CSL.TransactionHash.from_hex(utxo.tx_hash), utxo.output_index);
    unspent.add(CSL.TransactionUnspentOutput.new(input, CSL.TransactionOutput.new(wallet.address, value(utxo.amount))));
  }
  const change = CSL.ChangeConfig.new(wallet.address);
  builder.add_inputs_from_and_change(unspent, CSL.CoinSelectionStrategyCIP2.LargestFirstMultiAsset, change);
  const tx = CSL.FixedTransaction.from_bytes(builder.build_tx().to_bytes());
  tx.sign_and_add_vkey_signature(wallet.payment);
  if (builder.get_deposit().compare(big(0)) > 0) tx.sign_and_add_vkey_signature(wallet.stake);
  return tx;
}

function value(amounts) {
  const assets = CSL.MultiAsset.new();
  for (const { unit, quantity } of amounts.filter((amount) => amount.unit !== 'lovelace')) {
    const name = CSL.AssetName.new(Buffer.from(unit.slice(56), 'hex'));
    assets.set_asset(CSL.ScriptHash.from_hex(unit.slice(0, 56)), name, big(quantity));
  }
  return CSL.Value.new_with_assets(big(amounts.find((amount) => amount.unit === 'lovelace').quantity), assets);
}

function big(number) {
  return CSL.BigNum.from_str(String(number));
}

/** The payment credential of a text address, a key's, as Blockfrost takes it (CIP-5). */
export function credentialOf(address) {
  return CSL.Address.from_bech32(address).payment_cred().to_keyhash().to_bech32('addr_vkh');
}
