"""Ports for servers of tests."""

import random
import socket
from contextlib import suppress

_random = random.SystemRandom()


def free_port() -> int:
    """A port without a listener.

    It is below the ports of embedded servers and of outgoing connections, so that none of these takes it before the
    test's server does.
    """
    while True:
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", _random.randrange(10_000, 20_000)))
            return int(probe.getsockname()[1])
