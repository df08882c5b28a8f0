"""Addresses with several hosts: `scheme://user:password@h1:1,h2:2/rest`."""

import re

_PARTS = re.compile(r"(?s)([\w+]+://(?:[^/?#]*@)?)([^/?#@]*)(.*)")


def split(url: str) -> tuple[str, ...]:
    """The addresses of the single hosts."""
    parts = _PARTS.fullmatch(url)
    if parts is None:
        return (url,)
    before, hosts, after = parts.groups()
    return tuple(f"{before}{host}{after}" for host in hosts.split(","))
