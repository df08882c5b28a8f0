"""The restrictions of an API key: to scopes, and to networks of callers.

IP addresses and networks are compared as texts of bits, which the script in Valkey can do as well: a network contains
the addresses whose text begins with its own.
"""

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

import msgspec

SCOPES = ("transactions", "assets", "pools", "network", "accounts", "events", "submit")
"""The scopes to which a key may be restricted. Each chain route belongs to one of them."""

GRANTED_ONLY = ("submit",)
"""The scopes that a key has only if they are named: a key without scopes may do everything else."""

MAX_NETWORKS = 50
_MAPPED_BITS = 96
_REMEMBERED = 4_096


class KeyUse(msgspec.Struct, frozen=True):
    """One use of an API key: what restrictions check.

    `scope` is that of the route, "" if every key may call it. `ip_bits` is the caller's IP address in bits, "" if it
    is unknown. `network_id` is that of the network whose name was sent before the key, None if none was.
    """

    scope: str = ""
    ip_bits: str = ""
    network_id: int | None = None


class Restrictions(msgspec.Struct, frozen=True):
    """The networks (in bits) and the scopes of a key; none means no restriction, except for GRANTED_ONLY."""

    networks: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()

    def bars(self, use: KeyUse) -> Literal["ip", "scope"] | None:
        """The kind of restriction that bars this use of the key; None if it is allowed."""
        if self.networks and not use.ip_bits.startswith(self.networks):
            return "ip"
        named = bool(self.scopes) or use.scope in GRANTED_ONLY
        return "scope" if named and use.scope and use.scope not in self.scopes else None


def parse(ip_networks: Sequence[str], scopes: Sequence[str]) -> Restrictions:
    """Parse stored restrictions; IP networks are in CIDR notation."""
    return Restrictions(tuple(_bits_of_network(text) for text in ip_networks), tuple(scopes))


@lru_cache(_REMEMBERED)
def bits(ip_address: str | None) -> str:
    """The version of an IP address and its bits; "" if it is unknown."""
    return "" if ip_address is None else _bits(ipaddress.ip_address(ip_address))


def canonical(text: str) -> str:
    """A network in canonical CIDR notation; a single address is a network of one. Raises ValueError."""
    network = ipaddress.ip_network(text)
    if "%" in text:
        raise ValueError(text)  # a zone has a meaning on one host only
    mapped = getattr(network.network_address, "ipv4_mapped", None)
    if mapped is not None and network.prefixlen >= _MAPPED_BITS:  # callers are compared by their IPv4 address
        network = ipaddress.ip_network((mapped, network.prefixlen - _MAPPED_BITS))
    return str(network)


def _bits_of_network(text: str) -> str:
    network = ipaddress.ip_network(text)
    return _bits(network.network_address)[: 1 + network.prefixlen]


def _bits(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    return f"{address.version}{int(address):0{address.max_prefixlen}b}"
