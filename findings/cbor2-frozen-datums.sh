#!/usr/bin/env bash
# cbor2 6.3.0 decodes maps and lists below a tag as other types than elsewhere: code that looks into Plutus data finds nothing.
#
# Expected: a map is a dict and an array a list, as in cbor2 5 and as elsewhere in version 6; the documentation keeps immutable
# types for keys of maps and members of sets. Every Plutus constructor is a tag (121 to 127, 1280 to 1400, 102; CDDL `constr`), so
# that all maps of CIP-68 metadata, to name one, are below a tag.
# Seen: below a tag arrays are tuples, and maps are `cbor2.frozendict`, which is no dict: `isinstance(x, dict)` and `case dict()`
# are false, and metadata that are there seem to be missing, without an error.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# A datum of CIP-68: constructor 0 of the metadata, the version 1, and a constructor without fields.
cat >"$folder/read.py" <<'PYTHON'
import sys

import cbor2

datum = bytes.fromhex("d87983a1446e616d654454657374" + "01" + "d87980")
fields = cbor2.loads(datum).value
inside = cbor2.loads(bytes.fromhex("83a1446e616d654454657374" + "01" + "80"))
found = f"{type(fields).__name__} of {type(fields[0]).__name__}, a dict: {isinstance(fields[0], dict)}"
print(f"below the tag {found}; without it {type(inside).__name__} of {type(inside[0]).__name__}")
assert fields[0][b"name"] == b"Test" and type(inside) is list and type(inside[0]) is dict
if found != sys.argv[1]:
    sys.exit("changed")
PYTHON

for expected in "5.9.0 list of dict, a dict: True" "6.3.0 tuple of frozendict, a dict: False"; do
    version=${expected%% *}
    python3 -m venv "$folder/$version"
    "$folder/$version/bin/pip" --quiet --disable-pip-version-check install "cbor2==$version"
    echo -n "cbor2 $version: "
    "$folder/$version/bin/python" "$folder/read.py" "${expected#* }"
done
