#!/usr/bin/env bash
# Blockfrost's two packages for CIP-68 metadata disagree: one more field of a file hides the metadata of an NFT altogether.
#
# Expected: the metadata of the datum below. CIP-68 (222 NFT) has `files_details = {? name, mediaType, src, ; ... Additional
# properties are allowed}`, and the schema of @blockfrost/openapi 0.1.93 has `additionalProperties: true` for files, too.
# Seen: @blockfrost/blockfrost-utils 2.3.2 does not know the field, and then gives the CBOR of the whole list as a string in place of
# `files`. The schema requires an array, so `validateCIP68Metadata` says false. Their joint use, as in Blockfrost's backend, gives
# `onchain_metadata: null` for an NFT without CIP-25 metadata. Without the field `size`, the metadata are there.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit @blockfrost/blockfrost-utils@2.3.2 @blockfrost/openapi@0.1.93 cbor@9.0.2

cat >metadata.cjs <<'JS'
const { getMetadataFromOutputDatum } = require('@blockfrost/blockfrost-utils/lib/cip68.js');
const { validateCIP68Metadata } = require('@blockfrost/openapi');
const cbor = require('cbor');

const bytes = (fields) => new Map(Object.entries(fields).map(([key, value]) => [Buffer.from(key), value]));
const text = (value) => Buffer.from(value);

/** The datum of a reference token: constructor 0 of the metadata and the version 1. */
function shown(more) {
  const file = bytes({ mediaType: text('image/png'), src: text('ipfs://b'), ...more });
  const metadata = bytes({ name: text('NFT'), image: text('ipfs://a'), files: [file] });
  const datum = cbor.encodeOne(new cbor.Tagged(121, [metadata, 1])).toString('hex');
  const read = getMetadataFromOutputDatum(datum, { standard: 'nft' });
  console.log('files:', JSON.stringify(read.metadata.files));
  const valid = validateCIP68Metadata(read, 'nft');
  console.log('  shown:', JSON.stringify(valid && valid.metadata));
  return valid;
}

const plain = shown({});
const extended = shown({ size: text('4096') });
if (!plain || extended !== false) {
  console.log('changed');
  process.exit(1);
}
JS
node metadata.cjs
