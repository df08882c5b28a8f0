"""Packing and unpacking preserve every value that the ledger allows."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import packed
from shared.ledger import AddressNo
from shared.packed import Anchor, Attached, Extra, Input, Output

U64, I64 = st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1)
numbers = st.integers(0, 2**31 - 1)
lovelace, quantities = st.integers(0, 2**63 - 1), st.integers(1, 2**64 - 1)
outputs = st.builds(Output, numbers, lovelace, st.dictionaries(numbers, quantities, max_size=3))
inputs = st.builds(Input, st.binary(min_size=32, max_size=32), st.integers(0, 2**32 - 1), st.none() | outputs)
hashes = st.binary(min_size=28, max_size=28)
output_indexes = st.integers(0, 2**16 - 1)
attached_to = st.builds(
    Attached, output_indexes, st.none() | st.binary(min_size=32, max_size=32), st.booleans(), st.none() | hashes
)
certificates = st.builds(
    packed.Certificate,
    st.integers(0, len(packed.CERTIFICATES) - 1) | st.text(max_size=10),
    stake=st.none() | hashes,
    deposit=st.none() | U64,
    genesis=st.none() | st.tuples(hashes, hashes, hashes),
    anchor=st.none() | st.builds(Anchor, st.text(max_size=10), hashes),
)
extras = st.builds(
    Extra,
    withdrawals=st.dictionaries(st.binary(min_size=29, max_size=29), U64, max_size=2),
    metadata_cbor=st.dictionaries(U64, st.binary(max_size=40), max_size=2),
    metadata_json=st.dictionaries(U64, st.binary(max_size=40), max_size=2),
    invalid_before=st.none() | U64,
    invalid_hereafter=st.none() | U64,
    valid=st.booleans(),
    credits=st.dictionaries(st.binary(min_size=29, max_size=29), U64, max_size=2),
    certificates=st.lists(certificates, max_size=2),
)


def pack(output: Output) -> bytes:
    return packed.pack_output(output.address_no, output.lovelace, output.quantities)


@given(outputs)
def test_an_output_survives(output: Output) -> None:
    assert packed.unpack_output(pack(output)) == output


@given(output_indexes, st.lists(outputs, max_size=4))
def test_outputs_survive_packing(first_index: int, held: list[Output]) -> None:
    assert packed.unpack_outputs(packed.pack_outputs(first_index, [*map(pack, held)])) == (first_index, held)


@given(st.lists(attached_to, max_size=4, unique_by=lambda each: each.output_index))
def test_attachments_survive_packing_and_none_are_null(attached: list[Attached]) -> None:
    data = packed.pack_attached(attached)
    assert (data is None) == (not attached)
    assert packed.unpack_attached(data) == {each.output_index: each for each in attached}


referred = st.lists(
    st.tuples(st.integers(-(2**63), 2**63 - 1) | st.binary(min_size=32, max_size=32), st.integers(0, 2**16 - 1)),
    max_size=3,
)
returned = st.builds(
    packed.Returned,
    address=st.integers(0, 9) | st.binary(min_size=29, max_size=57),
    lovelace=st.integers(0, 2**63 - 1),
)


@given(st.builds(packed.References, references=referred, collaterals=referred, returned=st.none() | returned))
def test_references_survive_packing_and_none_are_null(references: packed.References) -> None:
    data = packed.pack_referred(references)
    assert (data is None) == (references == packed.References())
    assert packed.unpack_referred(data) == references


@given(st.lists(inputs, max_size=4))
def test_inputs_survive_packing(spent: list[Input]) -> None:
    keys = [packed.output_key(one.tx_hash, one.output_index) for one in spent]
    sources = [None if one.source is None else pack(one.source) for one in spent]
    data = packed.pack_inputs([*map(packed.pack_input, keys, sources)])
    assert packed.unpack_inputs(data) == spent
    assert [packed.output_of(key) for key in keys] == [(one.tx_hash, one.output_index) for one in spent]


@pytest.mark.parametrize("length", [0, 15, 16, 65_535, 65_536])
def test_any_number_of_inputs_and_outputs_survives_packing(length: int) -> None:
    output = Output(AddressNo(7), 1)
    assert packed.unpack_outputs(packed.pack_outputs(0, [pack(output)] * length)) == (0, [output] * length)
    spent = packed.pack_input(packed.output_key(bytes(32), 7), None)
    assert packed.unpack_inputs(packed.pack_inputs([spent] * length)) == [Input(bytes(32), 7, None)] * length


@given(st.dictionaries(numbers, I64.filter(bool), max_size=3))
def test_a_mint_survives_and_nothing_is_no_bytes(mint: packed.Quantities) -> None:
    data = packed.pack_mint(mint)
    assert packed.unpack_mint(data) == mint
    assert (data is None) == (not mint)


@pytest.mark.parametrize(
    "output", [(-1, 5), (1 << 31, 5), (1, 5, {-1: 5}), (1, 5, {1 << 31: 5}), (1, -1), (1, 5, {1: 0})]
)
def test_row_numbers_and_amounts_out_of_range_are_refused(output: tuple[object, ...]) -> None:
    with pytest.raises(msgspec.ValidationError):
        packed.unpack_output(msgspec.msgpack.encode(output))


@pytest.mark.parametrize("index", [-1, 1 << 16])
def test_indexes_of_outputs_out_of_range_are_refused(index: int) -> None:
    with pytest.raises(msgspec.ValidationError):
        packed.unpack_outputs(packed.pack_outputs(index, []))


@given(extras)
def test_extras_survive_packing_and_empty_ones_are_null(extra: Extra) -> None:
    data = packed.pack_extra(extra)
    assert packed.unpack_extra(data) == extra
    assert (data is None) == (extra == Extra())
