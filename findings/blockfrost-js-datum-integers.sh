#!/usr/bin/env bash
# @blockfrost/blockfrost-js 6.2.0 rounds the integers of datums and metadata, although it depends on json-bigint.
#
# Expected: the integers that the server sends. Those of Plutus data have any size (CDDL `big_int`), those of metadata 64 bits, and
# contracts keep supplies and hashes in them. Types of the package call `json_value` an object with any values;
# nothing says that its integers are approximate.
# Seen: 18446744073709551615, the greatest quantity of an asset, becomes 18446744073709552000, and 9007199254740993 becomes
# 9007199254740992: another datum, with another hash, without an error.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit @blockfrost/blockfrost-js@6.2.0

cat >datum.mjs <<'JS'
import http from 'node:http';
import { BlockFrostAPI } from '@blockfrost/blockfrost-js';

const answers = {
  datum: '{"json_value":{"int":18446744073709551615}}',
  metadata: '[{"label":"674","json_metadata":{"exact":9007199254740993}}]',
};
const server = http.createServer((request, response) => {
  response.setHeader('content-type', 'application/json');
  response.end(request.url.includes('/datum/') ? answers.datum : answers.metadata);
});
server.listen(0, '127.0.0.1', async () => {
  const customBackend = `http://127.0.0.1:${server.address().port}`;
  const api = new BlockFrostAPI({ projectId: 'preview', network: 'preview', customBackend, rateLimiter: false });
  const told = {
    datum: JSON.stringify(await api.scriptsDatum('00'.repeat(32))),
    metadata: JSON.stringify(await api.txsMetadata('00'.repeat(32))),
  };
  server.close();
  for (const kind of Object.keys(answers)) console.log(`${kind}: sent ${answers[kind]}\n  read ${told[kind]}`);
  if (!told.datum.includes('18446744073709552000') || !told.metadata.includes('9007199254740992')) {
    console.log('changed');
    process.exit(1);
  }
});
JS
node datum.mjs
