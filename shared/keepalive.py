"""TCP keepalive of connections to a node, on which an answer may take arbitrarily long."""

import socket
from typing import Any


def keep_alive(peer: Any) -> None:
    """Detect a dead peer of a socket within two minutes of silence. `peer` is a socket, or a transport's view of it."""
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, seconds in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
        if hasattr(socket, option):  # macOS has other names
            peer.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), seconds)
