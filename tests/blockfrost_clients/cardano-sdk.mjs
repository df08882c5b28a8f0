// A payment, a mint and a delegation with the Blockfrost providers of @cardano-sdk/cardano-services-client and
// cardano-serialization-lib, on a test network.
//
//   URL=https://…/blockfrost/api/v0 PROJECT_ID=… MNEMONIC='…' RECEIVER=addr_test1… POOL=pool1… UNUSED=addr_test1…
//   BUSY=addr_test1… BUSY_OUTPUTS=… DATUMS=addr_test1… DATUM=… DATUM_HASH=… node cardano-sdk.mjs

import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { setTimeout } from 'node:timers/promises';
import * as build from './serialization-lib.mjs';

// NOTE: as an ES module the package can't be loaded: it imports a JSON file without saying so (`with { type: 'json' }`).
const require = createRequire(import.meta.url);
const sdk = require('@cardano-sdk/cardano-services-client');
const ofSdk = createRequire(require.resolve('@cardano-sdk/cardano-services-client'));
const { Cardano, ProviderFailure, Serialization } = ofSdk('@cardano-sdk/core');

const { URL, PROJECT_ID, MNEMONIC, RECEIVER, POOL } = process.env;
const { UNUSED, BUSY, BUSY_OUTPUTS, DATUMS, DATUM, DATUM_HASH } = process.env;

const quiet = () => {};
const logger = { trace: quiet, debug: quiet, info: quiet, warn: quiet, error: quiet, fatal: quiet };
const client = new sdk.BlockfrostClient(
  { baseUrl: URL, projectId: PROJECT_ID },
  { rateLimiter: { schedule: (task) => task() } },
);
const network = new sdk.BlockfrostNetworkInfoProvider(client, logger);
const utxos = new sdk.BlockfrostUtxoProvider({ client, cache: cache(), logger });
const history = new sdk.BlockfrostChainHistoryProvider({
  client,
  cache: cache(),
  networkInfoProvider: network,
  logger,
});
// They ask for payment credentials instead of addresses.
const utxosOfCredentials = new sdk.BlockfrostUtxoProvider({
  client,
  cache: cache(),
  logger,
  queryUtxosByCredentials: true,
});
const historyOfCredentials = new sdk.BlockfrostChainHistoryProvider({
  client,
  cache: cache(),
  networkInfoProvider: network,
  logger,
  queryTxsByCredentials: true,
});
const rewards = new sdk.BlockfrostRewardsProvider(client, logger);
const assets = new sdk.BlockfrostAssetProvider(client, logger);
const submitter = new sdk.BlockfrostTxSubmitProvider(client, logger);
const dreps = new sdk.BlockfrostDRepProvider(client, logger);

const wallet = build.walletOf(MNEMONIC);
const address = Cardano.PaymentAddress(wallet.address.to_bech32());
const rewardAccount = Cardano.RewardAccount(wallet.rewardAddress);

await networkInfo();
await outputs();
await unusedThings();
const made = [await payment(), await mint(), await delegation()];
await transactions(made);
console.log(made.join('\n'));

async function networkInfo() {
  for (const provider of [network, utxos, history, rewards, assets, submitter]) {
    assert.deepEqual(await provider.healthCheck(), { ok: true });
  }
  const parameters = await network.protocolParameters();
  assert.equal(parameters.stakeKeyDeposit, 2_000_000);
  assert.ok(parameters.coinsPerUtxoByte > 0 && parameters.prices.memory > 0 && parameters.poolInfluence > '0');
  const raw = (await client.request('epochs/latest/parameters')).cost_models_raw;
  assert.deepEqual(parameters.costModels.get(Cardano.PlutusLanguageVersion.V1), raw.PlutusV1);
  assert.deepEqual(parameters.costModels.get(Cardano.PlutusLanguageVersion.V2), raw.PlutusV2);
  const genesis = await network.genesisParameters();
  assert.deepEqual([genesis.networkMagic, genesis.networkId, genesis.slotLength], [2, Cardano.NetworkId.Testnet, 1]);
  const tip = await network.ledgerTip();
  const eras = await network.eraSummaries();
  assert.ok(eras.length > 1 && eras.every(({ start }) => start.slot <= tip.slot));
  assert.equal(eras.at(-1).parameters.epochLength, genesis.epochLength);
}

async function outputs() {
  const busy = await utxos.utxoByAddresses({ addresses: [Cardano.PaymentAddress(BUSY)] });
  assert.equal(busy.length, Number(BUSY_OUTPUTS));
  assert.equal(new Set(busy.map(([input]) => `${input.txId}#${input.index}`)).size, busy.length);
  assert.ok(busy.every(([, output]) => output.address === BUSY && output.value.coins > 0n));
  const ofCredential = await utxosOfCredentials.utxoByAddresses({ addresses: [Cardano.PaymentAddress(BUSY)] });
  assert.deepEqual(new Set(ofCredential), new Set(busy));
  const carrying = await utxos.utxoByAddresses({ addresses: [Cardano.PaymentAddress(DATUMS)] });
  const [inline] = carrying.filter(([, { datum }]) => datum);
  assert.equal(Serialization.PlutusData.fromCore(inline[1].datum).toCbor(), DATUM);
  assert.deepEqual(carrying.map(([, { datumHash }]) => datumHash), [DATUM_HASH, DATUM_HASH]);
}

async function unusedThings() {
  assert.deepEqual(await utxos.utxoByAddresses({ addresses: [Cardano.PaymentAddress(UNUSED)] }), []);
  const none = await history.transactionsByAddresses({ addresses: [Cardano.PaymentAddress(UNUSED)] });
  assert.deepEqual(none, { pageResults: [], totalResultCount: 0 });
  const unused = { addresses: [Cardano.PaymentAddress(UNUSED)] };
  assert.deepEqual(await utxosOfCredentials.utxoByAddresses(unused), []);
  assert.deepEqual(await historyOfCredentials.transactionsByAddresses(unused), none);
  assert.equal(await rewards.rewardAccountBalance({ rewardAccount }), 0n);
  const asset = Cardano.AssetId('00'.repeat(28));
  await assert.rejects(assets.getAsset({ assetId: asset }), ({ reason }) => reason === ProviderFailure.NotFound);
  // Governance is not answered: an error, and not a representative that was never registered.
  const id = Cardano.DRepID.cip129FromCredential({ hash: '00'.repeat(28), type: Cardano.CredentialType.KeyHash });
  await assert.rejects(dreps.getDRepInfo({ id }), ({ reason }) => reason === ProviderFailure.Unknown);
}

async function payment() {
  const builder = await newBuilder();
  build.pay(builder, RECEIVER, 5_000_000n);
  const hash = await send(builder);
  const [paid] = (await utxos.utxoByAddresses({ addresses: [Cardano.PaymentAddress(RECEIVER)] })).filter(
    ([input]) => input.txId === hash,
  );
  assert.deepEqual(paid[1], { address: RECEIVER, value: { coins: 5_000_000n } });
  return hash;
}

async function mint() {
  const builder = await newBuilder();
  const assetId = Cardano.AssetId(build.mint(builder, wallet));
  const hash = await send(builder);
  const held = await utxos.utxoByAddresses({ addresses: [address] });
  assert.equal(held.find(([input]) => input.txId === hash)[1].value.assets.get(assetId), 7n);
  const info = await assets.getAsset({ assetId, extraData: { nftMetadata: true, tokenMetadata: true } });
  assert.deepEqual([info.supply, info.policyId], [7n, Cardano.AssetId.getPolicyId(assetId)]);
  const fingerprint = Cardano.AssetFingerprint.fromParts(info.policyId, Cardano.AssetId.getAssetName(assetId));
  assert.equal(info.fingerprint, fingerprint);
  const [tx] = await history.transactionsByHashes({ ids: [hash] });
  assert.deepEqual(tx.body.mint, new Map([[assetId, 7n]]));
  return hash;
}

async function delegation() {
  const builder = await newBuilder();
  build.delegate(builder, wallet, POOL, 2_000_000n);
  const hash = await send(builder);
  const [tx] = await history.transactionsByHashes({ ids: [hash] });
  const [registration, delegated] = tx.body.certificates;
  assert.equal(registration.__typename, Cardano.CertificateType.Registration);
  assert.equal(registration.deposit, 2_000_000n);
  assert.equal(delegated.__typename, Cardano.CertificateType.StakeDelegation);
  assert.equal(delegated.poolId, POOL);
  assert.equal(await rewards.rewardAccountBalance({ rewardAccount }), 0n);
  return hash;
}

/** The history of the wallet, page by page and from a block on, and the blocks of its transactions. */
async function transactions(hashes) {
  const addresses = [address];
  const all = await history.transactionsByAddresses({ addresses });
  assert.deepEqual(all.pageResults.slice(-3).map(({ id }) => id), hashes);
  for (const { id, body, blockHeader, index } of all.pageResults) {
    const told = await client.request(`txs/${id}`);
    assert.deepEqual(
      [body.fee, blockHeader.blockNo, blockHeader.hash, blockHeader.slot, index],
      [BigInt(told.fees), told.block_height, told.block, told.slot, told.index],
    );
    assert.ok(body.inputs.every((input) => input.address.startsWith('addr_test1')));
  }
  assert.deepEqual(await historyOfCredentials.transactionsByAddresses({ addresses }), all);
  const pagination = { startAt: 0, limit: 2, order: 'desc' };
  const newest = await history.transactionsByAddresses({ addresses, pagination });
  assert.deepEqual(newest.pageResults.map(({ id }) => id), hashes.toReversed().slice(0, 2));
  const lowerBound = all.pageResults.at(-2).blockHeader.blockNo;
  const since = await history.transactionsByAddresses({ addresses, blockRange: { lowerBound } });
  assert.deepEqual(since.pageResults.map(({ id }) => id), hashes.slice(1));
  const header = all.pageResults.at(-1).blockHeader;
  // NOTE: the package takes a block of epoch 0, such as this, for one that it does not support. What it reads is there.
  const block = await client.request(`blocks/${header.hash}`);
  const read = history.blocksByHashes({ ids: [header.hash] });
  if (block.epoch === 0 || block.epoch_slot === 0) await assert.rejects(read, /Queried unsupported block/);
  else assert.deepEqual((await read)[0].header, header);
  assert.deepEqual([block.height, block.slot], [header.blockNo, header.slot]);
  Cardano.VrfVkBech32(block.block_vrf);
  assert.ok(Cardano.SlotLeader(block.slot_leader).startsWith('pool1') && block.size > 0);
  assert.ok(BigInt(block.fees) >= all.pageResults.at(-1).body.fee);
}

async function newBuilder() {
  return build.builderFor(await client.request('epochs/latest/parameters'));
}

/** Balances, signs and submits; returns the hash once the transaction is in a block. */
async function send(builder) {
  const unspent = (await utxos.utxoByAddresses({ addresses: [address] })).map(([{ txId, index }, { value }]) => ({
    tx_hash: txId,
    output_index: index,
    amount: [
      { unit: 'lovelace', quantity: value.coins },
      ...[...(value.assets ?? [])].map(([unit, quantity]) => ({ unit, quantity })),
    ],
  }));
  const tx = build.signed(builder, wallet, unspent);
  await submitter.submitTx({ signedTransaction: tx.to_hex() });
  const hash = Cardano.TransactionId(tx.transaction_hash().to_hex());
  for (;;) {
    try {
      await history.transactionsByHashes({ ids: [hash] });
      return hash;
    } catch (error) {
      if (error.reason !== ProviderFailure.NotFound) throw error;
    }
    await setTimeout(200);
  }
}

function cache() {
  const known = new Map();
  return { get: async (key) => known.get(key), set: async (key, value) => known.set(key, value) };
}
