#!/usr/bin/env bash
# pycardano 0.19.2 leaves out an empty map of assets when it writes an output that it has read: the transaction has another id.
#
# Expected: reading the body of a transaction and writing it gives the same bytes, since its id is the hash of them, and pycardano's
# own `TransactionBody.hash` and `id` write the body anew. The transaction below, of 193 bytes, is in mainnet's chain
# (2de48c33…): the value of its output is `[1469300000, {}]`, which the CDDL's `value = coin / [coin, multiasset<positive_coin>]`
# allowed in the eras before Conway, and which a block of Conway holds.
# Seen: the value is written as `1469300000` alone, two bytes shorter, and the id differs.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install pycardano==0.19.2 cbor2==5.9.0 cbor2pure==5.8.0

"$folder/venv/bin/python" - <<'PYTHON'
import hashlib
import sys

from pycardano import TransactionBody

ID = "2de48c3347fda0d46d5447fd2044977770c42782ad6e32bf2fcca74cab5ec05d"
BODY = bytes.fromhex(
    "a300818258206be98581e330edd66c556d88237ab3d682c21f55ed6680b2fee97724fc18274e00018182581d61c26ac09931f2ff675857309be6ea"
    "f2d4bc18d2dd33f5290fc3a2add1821a5793bd20a0021a000aae60"
)
assert hashlib.blake2b(BODY, digest_size=32).hexdigest() == ID

body = TransactionBody.from_cbor(BODY)
written = body.to_cbor()
print("in the chain: ", len(BODY), "bytes,", ID)
print("by pycardano: ", len(written), "bytes,", body.hash().hex())
expected = BODY.replace(bytes.fromhex("821a5793bd20a0"), bytes.fromhex("1a5793bd20"))
if written != expected:
    sys.exit("changed: the empty map is kept" if written == BODY else "changed")
PYTHON
