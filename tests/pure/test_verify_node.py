"""How differences from the node are shown."""

from indexer.verify.node import against_node


def test_a_difference_of_long_bytes_is_shown_from_shortly_before_it() -> None:
    stored, new = bytes(1_000), bytes(500) + b"\1" + bytes(499)
    for one, other in ((stored, new), (new, stored)):
        was, now = against_node._shown(one, other)
        begin = 500 - against_node._MAX_SHOWN_BYTES // 2
        assert was.endswith(f" from byte {begin}") and now.endswith(f" from byte {begin}")
        assert was != now
    assert against_node._shown(b"\0", b"\1") == ("00", "01")
