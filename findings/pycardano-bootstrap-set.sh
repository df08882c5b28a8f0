#!/usr/bin/env bash
# pycardano 0.19.2 can't read transactions whose bootstrap witnesses are in a set with the tag 258.
#
# Expected: it reads the transaction below, which is in mainnet's chain (September 2024). Whoever spends from a Byron
# address adds a bootstrap witness. In the CDDL of Conway `? 2 : nonempty_set<bootstrap_witness>`, and a nonempty_set is
# `#6.258([+ a]) / [+ a]`, so that both forms are valid. The id is the hash of the body as it is in the chain.
# Seen: DeserializeException. The same transaction with a plain list of witnesses is read, and has the expected id.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet --disable-pip-version-check install pycardano==0.19.2 cbor2==5.9.0 cbor2pure==5.8.0

"$folder/venv/bin/python" - <<'PYTHON'
import sys

from pycardano import Transaction
from pycardano.exception import DeserializeException

BODY = """a400d90102818258202e23ec2916ab5980b90aa378485edaab7e8d89d2fe3d626ec7037974db9b301e01018282581d61823d5f1eca76d9152f
b8e485f97113c99b2c2c11d880f84faa3668861b00000003249a64c082584c82d818584283581cb490adedae594a5c2131f15a6f180dcdef1f9c84cf09
93f114796d60a101581e581cbeab7b5c6b45ef305228daa84b1dccb6a9ea3edf4f4bfc34e03e1bb2001a53c0f14c1b000000147cfbb395021a00029ee5
031a07f7f2f9""".replace("\n", "")
WITNESS = """845820031e1c33e15417d70cc20b9e546bb9b831fcd309fed21fcbc004d39fbd5977195840d1734b1db898b738e29633562327c82ce127
cea5d1f90a21869d95b62c1084620a9d9512fd24ecfcbe80d311794c5fddbfba1330ecd95f7364629f8d01f6c209582009292cbb9dfdb0378ee3cd943f
352ff871885afae5a3e9bf6d0e753e87a0f6fa5822a101581e581cbeab7b5c6b45ef0edbd61ba8cdda308269b63cea501f9531beef53bf""".replace("\n", "")
ID = "d250889ee28c267c186cac6274a8513e7cf026d47afdb31289d7d043bea345c6"

as_list = f"84{BODY}a10281{WITNESS}f5f6"
as_in_the_chain = f"84{BODY}a102d9010281{WITNESS}f5f6"
assert Transaction.from_cbor(as_list).transaction_body.hash().hex() == ID
print("in a list: read,", ID)
try:
    Transaction.from_cbor(as_in_the_chain)
except DeserializeException as error:
    print("in a set: DeserializeException,", str(error).split("\n")[0].strip())
else:
    sys.exit("changed: the transaction is read")
PYTHON
