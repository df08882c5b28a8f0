#!/usr/bin/env bash
# pycardano 0.19.2, installed today without further pins, can't be imported.
#
# Expected: `pip install pycardano` gives a library that can be imported, as its metadata allow the versions that pip chooses.
# Seen: pip chooses cbor2 6.3.0, which `pip check` finds compatible. cbor2pure 5.8.0, pycardano's own fork of cbor2 without the C
# extension, takes its exceptions from cbor2, and cbor2 6 has renamed some of them. With cbor2 5.9.0 all is well.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip=("$folder/venv/bin/pip" --quiet --disable-pip-version-check)
python="$folder/venv/bin/python"

"${pip[@]}" install pycardano==0.19.2 cbor2==6.3.0 cbor2pure==5.8.0
"${pip[@]}" check && echo "pip check: compatible"
if "$python" -c "import pycardano" 2>"$folder/said"; then
    echo "changed: pycardano is imported with cbor2 6.3.0"
    exit 1
fi
tail -n 1 "$folder/said" | sed "s|(.*)||"
grep --quiet "ImportError: cannot import name 'CBORDecodeValueError' from 'cbor2'" "$folder/said"

"${pip[@]}" install cbor2==5.9.0
"$python" -c "import pycardano; print('with cbor2 5.9.0: imported')"
