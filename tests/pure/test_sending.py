"""The answers that callers have not read yet: how many bytes of them a process holds."""

import random
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from api.errors import Refusal
from api.http import sending
from api.http.sending import Unread

CALLERS = "abcdef"


class _Connection:
    """A connection that records whether it was cut off. It is its own transport."""

    def __init__(self) -> None:
        self.is_cut_off, self.transport = False, self

    def abort(self) -> None:
        self.is_cut_off = True


@given(st.integers(), st.integers(1, 200))
def test_unread_answers_never_exceed_their_bounds(seed: int, count: int) -> None:
    """Whatever is added and read. A caller is refused, or its answers are cut off, only if none has more than it."""
    chance, unread = random.Random(seed), Unread()
    held: dict[_Connection, tuple[str, int]] = {}

    def bytes_of(caller: str) -> int:
        return sum(size for who, size in held.values() if who == caller)

    for _ in range(count):
        caller, size, connection = chance.choice(CALLERS), chance.randrange(8 << 20), _Connection()
        own, most, every = bytes_of(caller) + size, max(map(bytes_of, CALLERS)), sum(map(bytes_of, CALLERS)) + size
        response: Any = web.Response(body=_Zeros(size))
        try:
            unread.add(connection, caller, response)
        except Refusal as refusal:
            assert refusal.code == "too_many_concurrent_requests"
            assert own > sending.MAX_UNREAD_BYTES_EACH or (every > sending.MAX_UNREAD_BYTES and own > most // 2)
        else:
            assert own <= sending.MAX_UNREAD_BYTES_EACH
            held[connection] = caller, size
        cut_off = {each for each in held if each.is_cut_off}
        assert not cut_off or every > sending.MAX_UNREAD_BYTES
        assert connection not in cut_off
        for each in cut_off:
            del held[each]
        assert unread._all_bytes == sum(map(bytes_of, CALLERS)) <= sending.MAX_UNREAD_BYTES
        if held and chance.random() < 0.4:
            read = chance.choice(list(held))
            unread.sent(read)
            del held[read]
    for connection in held:
        unread.sent(connection)
    assert (unread._all_bytes, +unread._memory_bytes, unread._answers) == (0, {}, {})


def test_callers_that_read_nothing_do_not_keep_others_from_their_answers() -> None:
    """Four callers fill the memory. A fifth one gets its answer, and the oldest of the four is cut off."""
    unread, connections = Unread(), [_Connection() for _ in range(64)]
    each: Any = web.Response(body=bytes(1 << 20))
    for number, connection in enumerate(connections):
        unread.add(connection, number % 4, each)
    unread.add(_Connection(), "other", each)
    assert [connection.is_cut_off for connection in connections] == [True] + [False] * 63
    with pytest.raises(Refusal):
        unread.add(_Connection(), 1, each)


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
