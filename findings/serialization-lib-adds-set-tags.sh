#!/usr/bin/env bash
# @emurgo/cardano-serialization-lib-nodejs 15.0.3 adds tags to the sets of a transaction that had none: its body has another id.
#
# Expected: `Transaction.from_hex(x).body().to_hex()` is a part of x, so that its hash is the transaction's id; or the transaction is
# written as it was read by some setting. In the CDDL of Conway a set is `#6.258([* a]) / [* a]`, both forms are valid, and wallets
# often leave the tag out: of 1,800 transactions of mainnet of September 2024, the bodies of 1,773 changed.
# Seen: the inputs of the transaction below (2de48c33…, without tags in mainnet's chain) get the tag 258. `FixedTransaction` of the
# same library and @dcspark/cardano-multiplatform-lib-nodejs 6.2.0 keep the bytes of all 1,800.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit @emurgo/cardano-serialization-lib-nodejs@15.0.3 blakejs@1.2.1

cat >body.cjs <<'JS'
const { FixedTransaction, Transaction } = require('@emurgo/cardano-serialization-lib-nodejs');
const { blake2bHex } = require('blakejs');

const id = '2de48c3347fda0d46d5447fd2044977770c42782ad6e32bf2fcca74cab5ec05d';
const body =
  'a300818258206be98581e330edd66c556d88237ab3d682c21f55ed6680b2fee97724fc18274e00018182581d61c26ac09931f2ff675857309be6eaf2' +
  'd4bc18d2dd33f5290fc3a2add1821a5793bd20a0021a000aae60';
const transaction =
  `84${body}a10081825820b24e0e0b6ce31371f199886f20971df90a7bd33e9db664b64cade6da840ebfe958409766637db5db15fc2016e133fe26` +
  '49303100426c66b7587ed3a8b4b53df626abbfbeb0de9eaf1c296c1d626cbde5626ea4699a4f499666c9ff472aaccf08a00ff5f6';
const hash = (hex) => blake2bHex(Buffer.from(hex, 'hex'), undefined, 32);

const written = Transaction.from_hex(transaction).body().to_hex();
const fixed = FixedTransaction.from_hex(transaction).transaction_hash().to_hex();
console.log('in the chain:     ', body.slice(0, 14), hash(body));
console.log('FixedTransaction: ', ''.padEnd(14), fixed);
console.log('Transaction:      ', written.slice(0, 14), hash(written));
if (hash(body) !== id || fixed !== id) throw new Error('the chain has another id');
if (!written.startsWith('a300d90102')) {
  console.log('changed: no tag is added');
  process.exit(1);
}
JS
node body.cjs
