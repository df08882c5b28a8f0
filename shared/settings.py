"""The environment as one frozen Struct. A wrong variable is refused in one line that never shows a secret."""

import ipaddress
import os
import re
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import msgspec
import redis
import redis.asyncio

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
Value = TypeVar("Value")

NETWORKS = ("mainnet", "preview", "preprod")
LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
LOG_FORMATS = ("console", "json")


class SettingsError(Exception):
    """A value that can't be used. One line: the variable, its value (masked where secret) and what is expected."""


class Settings(msgspec.Struct, frozen=True):
    """What an operator decides, read once at start. None means unset."""

    database_url: str | None
    read_database_urls: tuple[str, ...]
    redis_url: str | None
    ogmios_urls: dict[str, str]  # by network name, networks without one left out
    bootstrap_admin_key: str | None
    api_host: str
    api_port: int
    token_registry_url: str | None
    trusted_proxies: tuple[IPNetwork, ...]
    data_dir: Path  # absolute
    log_level: str
    log_format: str | None  # None: console on a terminal, else json

    def __repr__(self) -> str:
        """Without the values: addresses and keys are secrets, and a repr ends up in logs."""
        return "Settings(...)"


def read(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this process. An empty variable is an unset one, as compose files pass them.

    Raises SettingsError for the first variable that can't be used.
    """

    def take(name: str, parse: Callable[[str], Value], expected: str, show: Callable[[str], str]) -> Value | None:
        text = environ.get(name, "").strip()
        return _parsed(name, text, parse, expected, show) if text else None

    postgres = "postgresql://user:password@host:port/database"
    return Settings(
        database_url=take("DATABASE_URL", _postgres_url, postgres, masked),
        read_database_urls=take("READ_DATABASE_URL", _postgres_urls, f"{postgres}, several with commas", masked) or (),
        redis_url=take("REDIS_URL", _redis_url, "redis://, rediss:// or unix:// and an address", masked),
        ogmios_urls={
            network: url
            for network in NETWORKS
            if (url := take(f"OGMIOS_URL_{network.upper()}", _ogmios_url, OGMIOS_URL, masked)) is not None
        },
        bootstrap_admin_key=take(_BOOTSTRAP, _admin_key, "iiak_admin_ and 40 hex characters", lambda _: _SECRET),
        api_host=take("API_HOST", _host, "a host name or an IP address", repr) or "127.0.0.1",
        api_port=take("API_PORT", _port, "a port from 1 to 65535", repr) or 8080,
        token_registry_url=take(
            "TOKEN_REGISTRY_URL", _registry_url, "an http:// or https:// address that contains {subject}", masked
        ),
        trusted_proxies=take("TRUSTED_PROXIES", _proxies, "networks like 10.0.0.0/8, several with commas", repr) or (),
        data_dir=take("DATA_DIR", _folder, "a folder, existing or not", repr) or Path(".data").absolute(),
        log_level=take("LOG_LEVEL", _one_of(LOG_LEVELS), " or ".join(LOG_LEVELS), repr) or "info",
        log_format=take("LOG_FORMAT", _one_of(LOG_FORMATS), " or ".join(LOG_FORMATS), repr),
    )


_BOOTSTRAP, _SECRET = "BOOTSTRAP_ADMIN_KEY", "(not shown)"
OGMIOS_URL = "ws:// or wss:// and the address of Ogmios"


def ogmios_url(name: str, text: str) -> str:
    """The address of Ogmios given as `name`, an option of the command line. Raises SettingsError."""
    return _parsed(name, text, _ogmios_url, OGMIOS_URL, masked)


def partners_bootstrap_key() -> SettingsError:
    """The refusal of a bootstrap key that the database knows as a partner's: one key can't be two callers."""
    return SettingsError(f"{_BOOTSTRAP} is {_SECRET}, expected another key than those issued to partners")


def unusable_database(url: str, cause: Exception) -> SettingsError:
    """The refusal of a database that answers, and does not let us in."""
    return SettingsError(f"DATABASE_URL is {masked(url)}, expected a database that lets us in: {cause}")


def masked(url: str) -> str:
    """The address as it may be shown: without password and parameters, and cut short where a password may be anywhere.

    An unescaped `/`, `?`, `#` or `@` inside a password moves it out of the place where passwords stand, so that only
    the scheme of such an address is shown.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return "***" if "@" in url else repr(url)
    host, slash, after = rest.partition("/")
    user, at, address = host.rpartition("@")
    if "@" in after or "@" in user or any(sign in host for sign in "?#"):
        return repr(f"{scheme}://***")
    path, question, _ = after.partition("?")
    name = user.partition(":")[0]
    return repr(f"{scheme}://{f'{name}:***@' if at else ''}{address}{slash}{path}{'?***' if question else ''}")


def _parsed(name: str, text: str, parse: Callable[[str], Value], expected: str, show: Callable[[str], str]) -> Value:
    try:
        return parse(text)
    except (ValueError, OSError):
        # NOTE: the cause is cut off, because the texts of ValueErrors quote the value.
        raise SettingsError(f"{name} is {show(text)}, expected {expected}") from None


def _url(text: str, *schemes: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in schemes or re.search(r"\s", text) or parts.port == 0:
        raise ValueError
    return text


def _postgres_url(text: str) -> str:
    """Postgres itself is asked about parameters that are not of the connection."""
    url = _url(text, "postgresql", "postgres")
    parameters = parse_qs(urlsplit(url).query)
    for name, known in _POSTGRES_CHOICES.items():
        if not {value.replace("_", "-") for value in parameters.get(name, [])} <= known:
            raise ValueError
    verifies = parameters.get("sslmode", [""])[-1].startswith("verify")
    if verifies and not all(Path(path).is_file() for path in parameters.get("sslrootcert", [])):
        raise ValueError
    return url


_POSTGRES_CHOICES = {
    "sslmode": {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"},
    "target_session_attrs": {"any", "primary", "standby", "read-write", "read-only", "prefer-standby"},
}


def _postgres_urls(text: str) -> tuple[str, ...]:
    return tuple(_postgres_url(url.strip()) for url in text.split(","))


def _redis_url(text: str) -> str:
    url = _url(text, "redis", "rediss", "unix")
    parts = urlsplit(url)
    path = unquote(parts.path).replace("/", "")
    if not (parts.hostname or path) or (parts.scheme != "unix" and not re.fullmatch(r"[0-9]{0,5}", path)):
        raise ValueError
    try:
        # NOTE: they connect later, but look at the parameters now; the API uses the one, the queue the other.
        redis.asyncio.ConnectionPool.from_url(url).make_connection()  # type: ignore[no-untyped-call]  # it has no hints
        redis.ConnectionPool.from_url(url).make_connection()
    except (TypeError, AttributeError, redis.RedisError) as wrong:
        raise ValueError from wrong
    return url


def _ogmios_url(text: str) -> str:
    return _with_host(_url(text, "ws", "wss"))


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
        socket.inet_aton(text)  # which also knows short forms, like 0 and 127.1
    elif not re.fullmatch(r"[0-9A-Za-z]([0-9A-Za-z.-]*[0-9A-Za-z])?", text):
        ipaddress.ip_address(text)
    return text


def _port(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,5}", text) or not 1 <= int(text) <= 65535:
        raise ValueError
    return int(text)


def _proxies(text: str) -> tuple[IPNetwork, ...]:
    return tuple(ipaddress.ip_network(network.strip()) for network in text.split(","))


def _folder(text: str) -> Path:
    folder = Path(text).expanduser().absolute()
    if not next(path for path in (folder, *folder.parents) if path.exists()).is_dir():
        raise ValueError
    return folder


def _one_of(values: tuple[str, ...]) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in values:
            raise ValueError
        return text.lower()

    return parse
