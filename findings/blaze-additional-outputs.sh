#!/usr/bin/env bash
# @blaze-cardano/query 0.5.6 loses the outputs with which a transaction is to be evaluated.
#
# Expected: `Blockfrost.evaluateTransaction(tx, additionalUtxos)` sends the outputs as `additionalUtxoSet`, the name in Blockfrost's
# OpenAPI document for `/utils/txs/evaluate/utxos`, each with its address and assets.
# Seen: it sends them as `additionalUtxoset`, which Blockfrost does not read, with `{}` for the address and for the assets, as
# JSON.stringify makes of a class and of a Map. A transaction that spends an output of one that is not in a block yet can't be evaluated.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts @blaze-cardano/query@0.5.6 @blaze-cardano/core@0.8.0

cat >evaluate.mjs <<'JS'
import http from 'node:http';
import * as Core from '@blaze-cardano/core';
import { Blockfrost } from '@blaze-cardano/query';

const address = Core.Address.fromBech32('addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz');
const token = Core.AssetId('ab'.repeat(28) + '01');
const input = new Core.TransactionInput(Core.TransactionId('00'.repeat(32)), 0n);
const value = new Core.Value(5_000_000n, new Map([[token, 3n]]));
const output = new Core.TransactionUnspentOutput(input, new Core.TransactionOutput(address, value));

const redeemer = Core.Redeemer.fromCore({
  index: 0,
  purpose: Core.RedeemerPurpose.spend,
  data: Core.PlutusData.newInteger(1n).toCore(),
  executionUnits: { memory: 1, steps: 1 },
});
const witnesses = new Core.TransactionWitnessSet();
const redeemers = Core.Redeemers.fromCore([]);
redeemers.setValues([redeemer]);
witnesses.setRedeemers(redeemers);
const body = new Core.TransactionBody(Core.CborSet.fromCore([input.toCore()], Core.TransactionInput.fromCore), [], 0n, undefined);
const tx = new Core.Transaction(body, witnesses);

const server = http.createServer((request, response) => {
  let sent = '';
  request.on('data', (part) => { sent += part; });
  request.on('end', () => {
    const { cbor, ...others } = JSON.parse(sent);
    console.log(JSON.stringify(others));
    const [[, told]] = others.additionalUtxoset ?? [[, {}]];
    const lost = !('additionalUtxoSet' in others) && JSON.stringify([told.address, told.value?.assets]) === '[{},{}]';
    response.setHeader('content-type', 'application/json');
    response.end('{"result":{"EvaluationResult":{}}}', () => {
      if (!lost) console.log('changed');
      process.exit(lost ? 0 : 1);
    });
  });
});
server.listen(0, '127.0.0.1', () => {
  const provider = new Blockfrost({ network: 'cardano-preview', projectId: 'key' });
  provider.url = `http://127.0.0.1:${server.address().port}`;
  provider.evaluateTransaction(tx, [output]);
});
JS
node evaluate.mjs
