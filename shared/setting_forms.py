"""The forms of settings: how the text of each is read, how a refusal describes it, and how much of it may be shown."""

import ipaddress
import re
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

import redis

from shared import hosts, libpq, pool_list, redis_url

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

SECRET = "(not shown)"

MAX_NODES = 8
"""The most addresses of Ogmios for a network."""


class Form(NamedTuple):
    """A form of values.

    `parse` raises ValueError, OSError or libpq.Unsupported if a text does not have it. `show` is what may be shown of
    a text, in quotes unless nothing is.
    """

    parse: Callable[[str], Any]
    expected: str
    show: Callable[[str], str] = repr


class WrongAddress(ValueError):
    """One of several addresses can't be used: its place from 1, the text that may be shown, the expected form."""

    def __init__(self, place: int, shown: str, expected: str) -> None:
        super().__init__()
        self.place, self.shown, self.expected = place, shown, expected


def masked(url: str) -> str:
    """The address without its password and parameters.

    With an unescaped `/`, `?`, `#` or `@` in the address, any part of it may belong to the password: then only the
    scheme is shown.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return "***" if "@" in url or "=" in url else repr(url)
    host, slash, after = rest.partition("/")
    user, at, address = host.rpartition("@")
    if "@" in after or "@" in user or any(sign in host for sign in "?#"):
        return repr(f"{scheme}://***")
    path, question, _ = after.partition("?")
    name = user.partition(":")[0]
    return repr(f"{scheme}://{f'{name}:***@' if at else ''}{address}{slash}{path}{'?***' if question else ''}")


def _url(text: str, *schemes: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in schemes or re.search(r"\s", text) or parts.port == 0:
        raise ValueError
    return text


def _postgres_url(text: str) -> str:
    """Checks the parameters that libpq knows; others are settings of the session, which Postgres checks."""
    urls = hosts.split(text)
    for url in urls:
        if len(urls) > 1:
            _with_host(url)
        _url(url, "postgresql", "postgres")
    libpq.check(text)
    return text


def _postgres_urls(text: str) -> tuple[str, ...]:
    """Addresses separated by commas; each host of an address with several hosts is a replica."""
    urls = [_postgres_url(url.strip()) for url in re.split(r",\s*(?=\w+://)", text)]
    if any("," in urlsplit(url).path for url in urls):
        raise ValueError
    return tuple(host for url in urls for host in hosts.split(url))


def _seconds(text: str) -> float:
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text) or float(text) == 0:
        raise ValueError
    return float(text)


def _redis_url(text: str) -> str:
    if urlsplit(text).scheme not in redis_url.SENTINEL_SCHEMES:
        parts = urlsplit(_url(text, "redis", "rediss", "unix"))
        path = unquote(parts.path).replace("/", "")
        if not (parts.hostname or path) or (parts.scheme != "unix" and not re.fullmatch(r"[0-9]{0,5}", path)):
            raise ValueError
    for name, paths in parse_qs(urlsplit(text).query).items():
        if name in ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile") and not Path(paths[-1]).is_file():
            raise ValueError
    try:
        # NOTE: these connect later, but check the parameters now; the API uses one, the queue the other.
        redis_url.async_pool(text).make_connection()  # type: ignore[no-untyped-call]  # it has no hints
        redis_url.client(text).connection_pool.make_connection()
    except (TypeError, AttributeError, redis.RedisError) as wrong:
        raise ValueError from wrong
    return text


def _ogmios_urls(text: str) -> tuple[str, ...]:
    """Addresses separated by commas."""
    urls = re.split(r",\s*(?=\w+://)", text)
    if len(urls) == 1:
        return (_with_host(_url(text, "ws", "wss")),)
    for place, url in enumerate(urls, 1):
        # NOTE: a comma in an unescaped password may have split it.
        shown = SECRET if "@" in text else masked(url)
        if place > MAX_NODES:
            raise WrongAddress(place, shown, f"{MAX_NODES} addresses at most")
        if url in urls[: place - 1]:
            raise WrongAddress(place, shown, "an address that differs from those before it")
        try:
            _with_host(_url(url, "ws", "wss"))
        except ValueError:
            raise WrongAddress(place, shown, _OGMIOS) from None
    return tuple(urls)


def _registry_url(text: str) -> str:
    if "{subject}" not in text:
        raise ValueError
    return _with_host(_url(text, "http", "https"))


def _with_host(url: str) -> str:
    if not urlsplit(url).hostname:
        raise ValueError
    return url


def _admin_key(text: str) -> str:
    if not re.fullmatch(r"iiak_admin_[0-9a-fA-F]{40}", text):
        raise ValueError
    return text


def _host(text: str) -> str:
    if re.fullmatch(r"[0-9.]+", text):
        socket.inet_aton(text)  # accepts short forms, too, like 0 and 127.1
    elif not re.fullmatch(r"[0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?", text):
        ipaddress.ip_address(text)
    return text


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:
        raise ValueError
    return int(text)


def _days(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 36_500:
        raise ValueError
    return int(text)


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,7}", text) or not 1 <= int(text) <= 1_000_000:
        raise ValueError
    return int(text)


def _proxies(text: str) -> tuple[IPNetwork, ...]:
    return tuple(ipaddress.ip_network(network.strip()) for network in text.split(","))


def _folder(text: str) -> Path:
    folder = Path(text).expanduser().absolute()
    if not next(path for path in (folder, *folder.parents) if path.exists()).is_dir():
        raise ValueError
    return folder


def _pool_list(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    pool_list.read(path)
    return path


def _word_of(*words: str) -> Form:
    def parse(text: str) -> str:
        if text.lower() not in words:
            raise ValueError
        return text.lower()

    return Form(parse, " or ".join(words))


_POSTGRES = "postgresql://user:password@host:port/database"

POSTGRES_URL = Form(_postgres_url, _POSTGRES, masked)
POSTGRES_URLS = Form(_postgres_urls, f"{_POSTGRES}, several with commas", masked)
REDIS_URL = Form(
    _redis_url, "redis://, rediss://, unix://, redis+sentinel:// or rediss+sentinel:// and an address", masked
)
_OGMIOS = "ws:// or wss:// and the address of Ogmios"
OGMIOS_URLS = Form(_ogmios_urls, _OGMIOS, masked)
REGISTRY_URL = Form(_registry_url, "an http:// or https:// address that contains {subject}", masked)
ADMIN_KEY = Form(_admin_key, "iiak_admin_ and 40 hex characters", lambda _: SECRET)
HOST = Form(_host, "a host name or an IP address")
PORT = Form(_port, "a port from 1 to 65535")
PROXIES = Form(_proxies, "networks like 10.0.0.0/8, several with commas")
SECONDS = Form(_seconds, "seconds in decimal digits, more than 0 and less than 1000000000")
DAYS = Form(_days, "a number of days from 1 to 36500")
COUNT = Form(_count, "a number from 1 to 1000000")
POOL_LIST = Form(_pool_list, "a text file with a pool id per line")
FOLDER = Form(_folder, "a folder, existing or not")
LOG_LEVEL = _word_of("debug", "info", "warning", "error", "critical")
LOG_FORMAT = _word_of("console", "json")
ON_SPLIT = _word_of("answer", "refuse")
_ON_OR_OFF = _word_of("on", "off")
SWITCH = Form(lambda text: _ON_OR_OFF.parse(text) == "on", _ON_OR_OFF.expected)
