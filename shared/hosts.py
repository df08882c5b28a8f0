"""Addresses with several hosts: `scheme://user:password@h1:1,h2:2/rest`."""

import re

_PARTS = re.compile(r"(?s)([\w+]+://(?:[^/?#]*@)?)([^/?#@]*)(.*)")


def each(url: str) -> tuple[str, ...]:
    """The addresses of the single hosts."""
    found = _PARTS.fullmatch(url)
    if found is None:
        return (url,)
    before, hosts, after = found.groups()
    return tuple(f"{before}{host}{after}" for host in hosts.split(","))
