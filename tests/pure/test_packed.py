"""Rows survive packing, whatever a ledger can hold."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared import packed
from shared.packed import Extra, Input, Output

U64, I64 = st.integers(0, 2**64 - 1), st.integers(-(2**63), 2**63 - 1)
names = st.binary(max_size=32)
assets = st.dictionaries(
    st.binary(min_size=28, max_size=28), st.dictionaries(names, U64, min_size=1, max_size=3), max_size=3
)
outputs = st.builds(Output, st.binary(min_size=1, max_size=120), U64, assets)
inputs = st.builds(Input, st.binary(min_size=32, max_size=32), st.integers(0, 2**32 - 1), st.none() | outputs)
extras = st.builds(
    Extra,
    mint=st.dictionaries(st.binary(min_size=28, max_size=28), st.dictionaries(names, I64, min_size=1), max_size=2),
    withdrawals=st.dictionaries(st.binary(min_size=29, max_size=29), U64, max_size=2),
    metadata_cbor=st.dictionaries(U64, st.binary(max_size=40), max_size=2),
    metadata_json=st.dictionaries(U64, st.binary(max_size=40), max_size=2),
    invalid_before=st.none() | U64,
    invalid_hereafter=st.none() | U64,
    valid=st.booleans(),
)


@given(U64, st.lists(outputs, max_size=4))
def test_outputs_survive(first_index: int, held: list[Output]) -> None:
    assert packed.unpack_outputs(packed.pack_outputs(first_index, [*map(packed.pack_output, held)])) == (
        first_index,
        held,
    )


@given(st.lists(inputs, max_size=4))
def test_inputs_survive(spent: list[Input]) -> None:
    keys = [packed.output_key(one.tx_hash, one.output_index) for one in spent]
    sources = [None if one.source is None else packed.pack_output(one.source) for one in spent]
    data = packed.pack_inputs([*map(packed.pack_input, keys, sources)])
    assert packed.unpack_inputs(data) == spent
    assert [packed.output_of(key) for key in keys] == [(one.tx_hash, one.output_index) for one in spent]
    assert data[1:] == msgspec.msgpack.encode(spent)


@pytest.mark.parametrize("length", [0, 15, 16, 65_535, 65_536])
def test_any_number_of_inputs_and_outputs_survives(length: int) -> None:
    output = Output(bytes(29), 1)
    assert packed.unpack_outputs(packed.pack_outputs(0, [packed.pack_output(output)] * length)) == (
        0,
        [output] * length,
    )
    spent = packed.pack_input(packed.output_key(bytes(32), 7), None)
    assert packed.unpack_inputs(packed.pack_inputs([spent] * length)) == [Input(bytes(32), 7, None)] * length


@given(extras)
def test_extras_survive_and_nothing_is_no_bytes(extra: Extra) -> None:
    data = packed.pack_extra(extra)
    assert packed.unpack_extra(data) == extra
    assert (data is None) == (extra == Extra())
