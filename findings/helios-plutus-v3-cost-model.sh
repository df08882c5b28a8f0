#!/usr/bin/env bash
# @helios-lang/tx-utils 0.6.36 reads Blockfrost's cost model of Plutus V3 as it is not, so transactions with V3 scripts can't be built.
#
# Expected: `parameters` of a Blockfrost client has the costs of each language as numbers in the ledger's order, of which the hash of
# the script data is made. Blockfrost's OpenAPI document has them as an object, `cost_models`, and in order, `cost_models_raw`.
# Seen: the object of Plutus V3 stays one, and calcScriptDataHash fails at it: map is not a function. Those of V1 and V2 are sorted by
# name, which is the ledger's order only for the costs that came first.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts @helios-lang/tx-utils@0.6.36 @helios-lang/ledger@0.7.23 @helios-lang/uplc@0.7.20

cat >costs.mjs <<'JS'
import { calcScriptDataHash, makeTxSpendingRedeemer } from '@helios-lang/ledger';
import { makeBlockfrostV0Client } from '@helios-lang/tx-utils';
import { makeIntData } from '@helios-lang/uplc';

const costs = { 'addInteger-cpu-arguments-intercept': 100788, 'addInteger-cpu-arguments-slope': 420 };
const answers = {
  'blocks/latest': { slot: 1, time: 1 },
  'epochs/latest/parameters': {
    cost_models: { PlutusV1: costs, PlutusV2: costs, PlutusV3: costs },
    coins_per_utxo_size: '4310',
    key_deposit: '2000000',
    max_tx_ex_mem: '14000000',
    max_tx_ex_steps: '10000000000',
  },
};
globalThis.fetch = async (url) => new Response(JSON.stringify(answers[String(url).split('/v0/')[1]]));

const parameters = await makeBlockfrostV0Client('preview', 'key').parameters;
console.log('V2:', parameters.costModelParamsV2, '  V3:', parameters.costModelParamsV3);
const redeemer = makeTxSpendingRedeemer(0, makeIntData(1), { mem: 1n, cpu: 1n });
let said = 'no error';
try {
  calcScriptDataHash(parameters, [], [redeemer], { usesPlutusV2: false, usesPlutusV3: true });
} catch (error) {
  said = error.message;
}
console.log('calcScriptDataHash:', said);
if (Array.isArray(parameters.costModelParamsV3) || !said.includes('map is not a function')) {
  console.log('changed');
  process.exit(1);
}
JS
node costs.mjs
