"""The size of Byron transactions, compared with the bytes of recorded ones."""

import io

import cbor2

from api.blockfrost.byron_size import size_bytes
from shared import address
from tests.chain.recordings import FILES


def test_the_size_is_that_of_the_transaction_without_its_witnesses() -> None:
    """The CBOR of a recorded transaction is a list of the transaction and its witnesses."""
    sizes = []
    for block in FILES["byron"].blocks():
        for tx in block.get("transactions", []):
            file = io.BytesIO(bytes.fromhex(tx["cbor"])[1:])
            cbor2.CBORDecoder(file).decode()
            paid = [(address.of_node(each["address"]), each["value"]["ada"]["lovelace"]) for each in tx["outputs"]]
            assert size_bytes([each["index"] for each in tx["inputs"]], paid) == file.tell()
            sizes.append(file.tell())
    assert len(sizes) > 10


def test_large_numbers_take_more_bytes() -> None:
    """Lengths of heads by RFC 8949."""
    one = size_bytes([0], [(b"", 0)])
    for value, more in ((23, 0), (24, 1), (255, 1), (256, 2), (65_535, 2), (65_536, 4), (2**32 - 1, 4), (2**32, 8)):
        assert size_bytes([value], [(b"", 0)]) == size_bytes([0], [(b"", value)]) == one + more
