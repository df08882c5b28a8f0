#!/usr/bin/env bash
# @cardano-sdk/cardano-services-client 0.26.37 can't be loaded as an ES module.
#
# Expected: `import '@cardano-sdk/cardano-services-client'` works. Its package.json offers `./dist/esm/index.js` for `import`, for Node.js
# 22 or later.
# Seen: TypeError [ERR_IMPORT_ATTRIBUTE_MISSING], in Node.js 20 ERR_IMPORT_ASSERTION_TYPE_MISSING: that file imports package.json without
# the attribute `type: "json"`, which Node.js requires (ECMAScript 2025, import attributes). `require` works.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit --ignore-scripts --omit=optional @cardano-sdk/cardano-services-client@0.26.37

node --input-type=module -e "
import { createRequire } from 'node:module';
const name = '@cardano-sdk/cardano-services-client';
const required = typeof createRequire('$folder/x.js')(name).BlockfrostClient;
const imported = await import(name).then(() => 'works', (error) => error.code);
console.log('require:', required, '  import:', imported);
if (required !== 'function' || !/^ERR_IMPORT_(ATTRIBUTE|ASSERTION_TYPE)_MISSING$/.test(imported)) {
  console.log('changed');
  process.exit(1);
}
"
