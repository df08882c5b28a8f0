#!/usr/bin/env bash
# @helios-lang/tx-utils 0.6.36 refuses about half of all valid mnemonic phrases.
#
# Expected: restoreRootPrivateKey takes every phrase whose last bits are the first bits of the entropy's SHA-256 hash (BIP-39,
# "Generating the mnemonic"), such as those of BIP-39's own test vectors.
# Seen: if the hash begins with a zero bit, "invalid checksum": the first byte is written in binary without its leading zeros, of which
# the first digits are then taken. makeRootPrivateKey takes the entropy of such a phrase.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts @helios-lang/tx-utils@0.6.36

cat >phrases.mjs <<'JS'
import { createHash } from 'node:crypto';
import { restoreRootPrivateKey } from '@helios-lang/tx-utils';

const phrases = {
  '00000000000000000000000000000000': `${'abandon '.repeat(11)}about`,
  '7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f7f': 'legal winner thank year wave sausage worth useful legal winner thank yellow',
  '80808080808080808080808080808080': 'letter advice cage absurd amount doctor acoustic avoid letter advice cage above',
  ffffffffffffffffffffffffffffffff: `${'zoo '.repeat(11)}wrong`,
};
let refused = 0;
let asExpected = true;
for (const [entropy, phrase] of Object.entries(phrases)) {
  const first = createHash('sha256').update(Buffer.from(entropy, 'hex')).digest()[0].toString(2).padStart(8, '0');
  let said = 'taken';
  try {
    restoreRootPrivateKey(phrase.split(' '));
  } catch (error) {
    said = error.message;
    refused += 1;
  }
  console.log(`hash begins ${first}: ${said}`);
  asExpected &&= (said === 'invalid checksum') === first.startsWith('0');
}
if (!refused || !asExpected) {
  console.log('changed');
  process.exit(1);
}
JS
node phrases.mjs
