#!/usr/bin/env bash
# @lucid-evolution/provider 0.1.94 evaluates scripts with other quantities than those of the outputs that it was given.
#
# Expected: `Blockfrost.evaluateTx` sends the outputs as they are. Quantities are `bigint` in Lucid Evolution, and on the chain up to
# 2^64 - 1 (CDDL `positive_coin`); JSON puts no limit on its numbers, and Ogmios' schema says `integer`.
# Seen: the client turns them into `number`, so 9007199254740993 of an asset are sent as 9007199254740992, and a supply of 2^63 - 1 as
# 9223372036854776000. A script that checks what an output holds then judges, or spends units on, a value that does not exist.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit @lucid-evolution/provider@0.1.94

cat >evaluate.mjs <<'JS'
import http from 'node:http';
import { Blockfrost } from '@lucid-evolution/provider';

const quantities = [9007199254740993n, 2n ** 63n - 1n];
const assets = { lovelace: 2000000n };
quantities.forEach((quantity, number) => { assets[`${'ab'.repeat(28)}0${number}`] = quantity; });

const server = http.createServer((request, response) => {
  let body = '';
  request.on('data', (part) => { body += part; });
  request.on('end', () => {
    const sent = [...body.matchAll(/\.0\d":(\d+)/g)].map(([, digits]) => digits);
    quantities.forEach((quantity, number) => console.log('given', quantity, 'sent', sent[number]));
    response.setHeader('content-type', 'application/json');
    response.end('{"result":{"EvaluationResult":{}}}', () => {
      const rounded = sent.join() === '9007199254740992,9223372036854776000';
      if (!rounded) console.log('changed');
      process.exit(rounded ? 0 : 1);
    });
  });
});
server.listen(0, '127.0.0.1', () => {
  const address = 'addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz';
  const output = { txHash: '00'.repeat(32), outputIndex: 0, address, assets };
  new Blockfrost(`http://127.0.0.1:${server.address().port}`, 'key').evaluateTx('00', [output]);
});
JS
node evaluate.mjs
