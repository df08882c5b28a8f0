"""The export of usage as CSV: no spreadsheet computes what a partner wrote."""

import csv
import io

import hypothesis.strategies as st
import pytest
from hypothesis import example, given

from api.admin.breakdown import csv_of

_FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")
texts = st.text(st.sampled_from("=+-@\uff1da1 \t\r\n,;|\"'"), max_size=12)


@pytest.mark.parametrize("separator", ",;|\t")
@given(name=texts, reference=texts)
@example(name="=1+1", reference="+1")
@example(name="first;=1+1", reference=" =1")
@example(name="two\n=lines", reference='"=1')
def test_no_cell_begins_like_a_formula(separator: str, name: str, reference: str) -> None:
    written = csv_of([[name, 7, reference]]).decode()
    cells = [cell for row in csv.reader(io.StringIO(written, newline=""), delimiter=separator) for cell in row]
    assert not [cell for cell in cells if cell.lstrip('" \t\r\n').startswith(_FORMULA)], written


@given(texts)
def test_other_text_stays_as_it_is(text: str) -> None:
    plain = text.translate(dict.fromkeys(map(ord, "=+-@\uff1d\t\r\n")))
    (row,) = csv.reader(io.StringIO(csv_of([[plain, 7]]).decode(), newline=""))
    assert row == [plain, "7"]
