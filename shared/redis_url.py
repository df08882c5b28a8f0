"""Clients of Redis or Valkey for every form of REDIS_URL.

`redis+sentinel://:password@h1:26379,h2:26379/name/0`, or `rediss+sentinel://` for TLS, queries the Sentinels for the
primary of that name before each connection; `sentinel_username` and `sentinel_password` are their credentials. All
other forms and parameters are redis-py's.
"""

import re
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

import redis
import redis.asyncio
from redis import sentinel
from redis.asyncio import sentinel as async_sentinel
from redis.asyncio.connection import parse_url as async_options
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.connection import parse_url as options_of
from redis.retry import Retry

from shared import hosts

SENTINEL_SCHEMES = ("redis+sentinel", "rediss+sentinel")

_SENTINEL_PORT = 26379
# After this time the next Sentinel is queried.
_SENTINEL_WITHIN_S = 0.5


def client(url: str, **options: Any) -> redis.Redis:
    """A blocking client; `options` are redis-py's. Raises ValueError for an invalid address."""
    if urlsplit(url).scheme not in SENTINEL_SCHEMES:
        return redis.Redis.from_url(url, **options)
    name, addresses, primary_url, of_sentinels = _read(url)
    of_primary = options_of(primary_url)  # type: ignore[no-untyped-call]  # it has no hints
    secure = of_primary.pop("connection_class", None) is not None
    asked = sentinel.Sentinel(  # type: ignore[no-untyped-call]  # nor has this
        addresses, sentinel_kwargs=_for_sentinels(of_primary, secure) | of_sentinels | {"retry": Retry(NoBackoff(), 0)}
    )
    of_primary = {key: value for key, value in of_primary.items() if key not in ("host", "port")}
    made: redis.Redis = asked.master_for(name, ssl=secure, **(of_primary | options))  # type: ignore[no-untyped-call]
    return made


def async_pool(url: str) -> redis.asyncio.ConnectionPool:
    """A connection pool for asyncio. Raises ValueError for an invalid address."""
    if urlsplit(url).scheme not in SENTINEL_SCHEMES:
        return redis.asyncio.ConnectionPool.from_url(url)
    name, addresses, primary_url, of_sentinels = _read(url)
    of_primary: dict[str, Any] = dict(async_options(primary_url))
    secure = of_primary.pop("connection_class", None) is not None
    asked = async_sentinel.Sentinel(  # type: ignore[no-untyped-call]
        addresses,
        sentinel_kwargs=_for_sentinels(of_primary, secure) | of_sentinels | {"retry": AsyncRetry(NoBackoff(), 0)},
    )
    of_primary = {key: value for key, value in of_primary.items() if key not in ("host", "port")}
    return async_sentinel.SentinelConnectionPool(name, asked, ssl=secure, **of_primary)  # type: ignore[no-untyped-call]


def _read(url: str) -> tuple[str, list[tuple[str, int]], str, dict[str, Any]]:
    """The primary's name, the hosts and ports of the Sentinels, an address of the primary in redis-py's form, and the
    options for the Sentinels alone. Raises ValueError.
    """
    split = [urlsplit(host_url) for host_url in hosts.split(url)]
    parts = split[0]
    path = re.fullmatch(r"/([^/]+)(?:/([0-9]{0,5}))?", parts.path)
    if path is None or not all(host.hostname for host in split):
        raise ValueError
    addresses = [(str(host.hostname), host.port or _SENTINEL_PORT) for host in split]
    query = parse_qsl(parts.query)
    of_sentinels = {key.removeprefix("sentinel_"): value for key, value in query if key in _OF_SENTINELS}
    left = urlencode([(key, value) for key, value in query if key not in _OF_SENTINELS])
    scheme = parts.scheme.removesuffix("+sentinel")
    primary_url = urlunsplit((scheme, parts.netloc, f"/{path[2] or 0}", left, ""))
    return unquote(path[1]), addresses, primary_url, of_sentinels


_OF_SENTINELS = ("sentinel_username", "sentinel_password")


def _for_sentinels(of_primary: dict[str, Any], secure: bool) -> dict[str, Any]:
    """Options of a connection to a Sentinel: the primary's TLS options, and short timeouts."""
    tls = {key: value for key, value in of_primary.items() if key.startswith("ssl_")} | {"ssl": True} if secure else {}
    return tls | {"socket_timeout": _SENTINEL_WITHIN_S, "socket_connect_timeout": _SENTINEL_WITHIN_S}
