"""The answers that callers have not read yet: how many bytes of them a process holds."""

import random
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from api import sending
from api.errors import Refusal
from api.sending import Unread

CALLERS = "abcdef"


@given(st.integers(), st.integers(1, 200))
def test_unread_answers_never_exceed_their_bounds(seed: int, count: int) -> None:
    """Whatever is added and read, a caller is refused only if it, or all together, would exceed a bound."""
    chance, unread = random.Random(seed), Unread()
    held: dict[int, tuple[str, int]] = {}
    for connection in range(count):
        caller, size = chance.choice(CALLERS), chance.randrange(8 << 20)
        own = sum(bytes_ for who, bytes_ in held.values() if who == caller)
        every = sum(bytes_ for _, bytes_ in held.values())
        fits = own + size <= sending.MOST_UNREAD_BYTES_EACH and every + size <= sending.MOST_UNREAD_BYTES
        response: Any = web.Response(body=_Zeros(size))
        try:
            unread.add(connection, caller, response)
        except Refusal as refusal:
            assert not fits
            assert refusal.code == "too_many_concurrent_requests"
        else:
            assert fits
            held[connection] = caller, size
        if held and chance.random() < 0.4:
            read = chance.choice(list(held))
            unread.sent(read)
            del held[read]
    for connection in held:
        unread.sent(connection)
    assert (unread._all_bytes, +unread._memory_bytes, unread._answers) == (0, {}, {})


class _Zeros(bytes):
    """Bytes of some length without their memory."""

    _length: int

    def __new__(cls, length: int) -> "_Zeros":
        made = super().__new__(cls)
        made._length = length
        return made

    def __len__(self) -> int:
        return self._length


def test_a_caller_with_too_many_unread_answers_does_not_keep_others_from_theirs() -> None:
    unread = Unread()
    each: Any = web.Response(body=bytes(1 << 20))
    for connection in range(16):
        unread.add(connection, "a", each)
    with pytest.raises(Refusal):
        unread.add(16, "a", each)
    unread.add(17, "b", each)
