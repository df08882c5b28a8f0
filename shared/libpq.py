"""The parameters of Postgres addresses that libpq knows and asyncpg does not: translated, or refused by name.

asyncpg passes whatever it does not know to the server, which refuses the connection.
"""

import re
import ssl
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

import msgspec

from shared import hosts


class Unsupported(ValueError):
    """A parameter that is not supported. The message says which address was expected, without the value."""


class Connecting(msgspec.Struct, frozen=True):
    """How to connect to one host.

    `url` is for asyncpg. `within_s` bounds an attempt. `keepalive` is False if dead connections are to be left to the
    operating system; `tcp` are values of TCP options by their names in the module `socket`.
    """

    url: str
    within_s: float | None = None
    keepalive: bool = True
    tcp: Mapping[str, int] = {}


@lru_cache
def connecting(url: str) -> Connecting:
    """How asyncpg connects to an address of one host as libpq would. Raises Unsupported."""
    kept, given = list[tuple[str, str]](), dict[str, str]()
    for name, value in parse_qsl(urlsplit(url).query, keep_blank_values=True):
        if name == "sslrootcert" and value == _SYSTEM:
            kept += [(name, _system_certificates()), ("sslmode", "verify-full")]
        elif name in _OF_LIBPQ_ALONE:
            given[name] = value
        else:
            kept.append((name, value))
    _refuse_unsupported(dict(kept) | given)
    seconds = given.get("connect_timeout", "0")
    return Connecting(
        urlunsplit(urlsplit(url)._replace(query=urlencode(kept, quote_via=quote))) if given or kept else url,
        within_s=float(seconds) if int(seconds) > 0 else None,
        keepalive=given.get("keepalives") != "0",
        tcp={_TCP[name]: int(value) for name, value in given.items() if name in _TCP and int(value) > 0},
    )


def check(url: str) -> None:
    """Raise Unsupported if an address of one or several hosts has a parameter that is not supported."""
    connecting(hosts.split(url)[0])


def _refuse_unsupported(given: Mapping[str, str]) -> None:
    for name, value in given.items():
        allowed = _SUPPORTED.get(name)
        if allowed is None:
            continue
        if not allowed.values:
            raise Unsupported(f"an address without {name}")
        if not allowed.matches(value):
            raise Unsupported(f"an address with {name}={allowed.values}")
    root = given.get("sslrootcert")
    if given.get("sslmode", "").startswith("verify") and root is not None and not Path(root).is_file():
        raise Unsupported("an address whose sslrootcert is a file or `system`")


class _Allowed(msgspec.Struct, frozen=True):
    """What a parameter may be: `values` says so in an error message, and is empty if no value is supported."""

    values: str
    matches: Callable[[str], bool]


def _one_of(*words: str) -> _Allowed:
    return _Allowed(" or ".join(words), lambda value: value.replace("_", "-") in words)


def _system_certificates() -> str:
    """The file of the certificates that this machine trusts, which libpq calls `system`. Raises Unsupported."""
    file = ssl.get_default_verify_paths().cafile
    if file is None:
        raise Unsupported("an address whose sslrootcert is a file, since this machine has none of its own")
    return file


_NONE = _Allowed("", lambda _: False)
_NUMBER = _Allowed("a number", lambda value: re.fullmatch(r"-?[0-9]{1,9}", value) is not None)
_SYSTEM = "system"
_TCP = {
    "keepalives_idle": "TCP_KEEPIDLE",
    "keepalives_interval": "TCP_KEEPINTVL",
    "keepalives_count": "TCP_KEEPCNT",
    "tcp_user_timeout": "TCP_USER_TIMEOUT",
}
_OF_LIBPQ_ALONE = {
    "connect_timeout": _NUMBER,
    "keepalives": _one_of("0", "1"),
    **dict.fromkeys(_TCP, _NUMBER),
    # Whatever a server offers of these, asyncpg does what one of the allowed values says.
    "channel_binding": _one_of("disable", "prefer"),
    "client_encoding": _Allowed("UTF8", lambda value: value.lower().replace("-", "") in ("auto", "utf8", "unicode")),
    "fallback_application_name": _Allowed("a name", lambda _: True),
    "gssdelegation": _one_of("0"),
    "gssencmode": _one_of("disable", "prefer"),
    "load_balance_hosts": _one_of("disable", "random"),  # all hosts are tried at the same time
    "max_protocol_version": _one_of("3.0", "3.2", "latest"),
    "min_protocol_version": _one_of("3.0"),
    "replication": _one_of("false", "off", "no", "0"),
    "sslcertmode": _one_of("allow"),
    "sslcompression": _one_of("0", "1"),  # libpq ignores it since version 14
    "sslsni": _one_of("1"),
    **dict.fromkeys(
        (
            "hostaddr",
            "oauth_client_id",
            "oauth_client_secret",
            "oauth_issuer",
            "oauth_scope",
            "require_auth",
            "requirepeer",
            "scram_client_key",
            "scram_server_key",
            "servicefile",
            "sslcrldir",
            "sslkeylogfile",
        ),
        _NONE,
    ),
}
"""What libpq knows and asyncpg does not, with the supported values."""

_SUPPORTED = _OF_LIBPQ_ALONE | {
    "sslmode": _one_of("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "sslnegotiation": _one_of("postgres", "direct"),
    "target_session_attrs": _one_of("any", "primary", "standby", "read-write", "read-only", "prefer-standby"),
}
