#!/usr/bin/env bash
# pycardano 0.19.2 with its faster decoder changes the order of certificates, and the id of a transaction with it.
#
# Expected: the same id from both decoders, that of mainnet's chain: 66f6ec2b… holds a pool delegation and a vote delegation in a
# set with the tag 258, an `oset` of the CDDL, whose order counts. `CBOR_C_EXTENSION=1` is pycardano's switch to the C extension of
# cbor2, which is several times faster; what is read should not depend on it.
# Seen: with the switch, the id differs from the chain's in some processes, by PYTHONHASHSEED: the certificates are swapped. The
# default decoder keeps them. A wallet that signs such an id signs another transaction.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install pycardano==0.19.2 cbor2==5.9.0 cbor2pure==5.8.0

cat >"$folder/id.py" <<'PYTHON'
from pycardano import TransactionBody

BODY = """a500d90102818258200d45d3e34b9fb4a203d6b42519ea929052046b0c029edbd391ac7b0a1be5979b000181825839015ab2601e11279abacfc1
3b8cb64d69956b23efae974fd894bad6527f4693f7069fb592b8170d67da3788c75ce0b70c99c952103c62398eec1a00e501ba021a0002bb41031a07f7f3
9904d901028283028200581c4693f7069fb592b8170d67da3788c75ce0b70c99c952103c62398eec581caa8ce95c3862c3e5f6e1dccebfcf36f4379484ae
9eb42d7a476483b983098200581c4693f7069fb592b8170d67da3788c75ce0b70c99c952103c62398eec8102"""
print(TransactionBody.from_cbor(BODY.replace("\n", "")).hash().hex())
PYTHON

ID=66f6ec2b2032d550b9b447235cb6f37067bb23860e75734a19801d954d628d89
for seed in 1 2 3 4 5 6; do
    PYTHONHASHSEED=$seed "$folder/venv/bin/python" "$folder/id.py" >>"$folder/default"
    PYTHONHASHSEED=$seed CBOR_C_EXTENSION=1 "$folder/venv/bin/python" "$folder/id.py" >>"$folder/extension"
done
for decoder in default extension; do
    echo "$decoder:"
    sort "$folder/$decoder" | uniq -c
done
[ "$(sort -u "$folder/default")" = "$ID" ] || { echo "changed: the default decoder differs from the chain"; exit 1; }
if ! grep --quiet --invert-match "$ID" "$folder/extension"; then
    echo "changed: the extension keeps the order"
    exit 1
fi
