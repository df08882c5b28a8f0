#!/usr/bin/env bash
# The OpenAPI document of @blockfrost/openapi 0.1.93 says that it is OpenAPI 3.0.3, and is not.
#
# Expected: `openapi: 3.0.3` and a document that a validator of that version accepts. In OpenAPI 3.0 the types are array, boolean,
# integer, number, object and string (schemas/v3.0/schema.json of the specification); null is `nullable: true`, which the document
# uses everywhere else. `type: "null"` belongs to 3.1.
# Seen: six schemas of JSON from the chain have `type: "null"`, so the whole document is refused, and generators that validate
# first make no client. With these six replaced it is valid.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm install --silent --no-fund --no-audit @blockfrost/openapi@0.1.93
python3 -m venv venv
venv/bin/pip --quiet --disable-pip-version-check install openapi-spec-validator==0.9.0

venv/bin/python - <<'PYTHON'
import sys

import yaml
from openapi_spec_validator import OpenAPIV30SpecValidator

document = yaml.safe_load(open("node_modules/@blockfrost/openapi/openapi.yaml"))
print("openapi:", document["openapi"])
nulls = []


def find(part: object, place: str) -> None:
    if isinstance(part, dict):
        if part.get("type") == "null":
            nulls.append((place, part))
        for name, below in part.items():
            find(below, f"{place}/{name}")
    elif isinstance(part, list):
        for number, below in enumerate(part):
            find(below, f"{place}/{number}")


find(document, "#")
valid = OpenAPIV30SpecValidator(document).is_valid()
print("valid:", valid, *(place for place, _ in nulls), sep="\n  ")
for _, schema in nulls:
    schema.clear()
    schema |= {"type": "object", "nullable": True}
repaired = OpenAPIV30SpecValidator(document).is_valid()
print("valid without them:", repaired)
if document["openapi"] != "3.0.3" or valid or len(nulls) != 6 or not repaired:
    sys.exit("changed")
PYTHON
