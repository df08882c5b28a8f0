"""The settings, read from environment variables. An invalid one is refused in one line that never shows a secret."""

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

from shared import hosts, libpq, redis_url
from shared.network import NETWORKS

IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network
Value = TypeVar("Value")

LOG_LEVELS = ("debug", "info", "warning", "error", "critical")
LOG_FORMATS = ("console", "json")


class SettingsError(Exception):
    """An invalid setting. One line: the variable, its value (masked if secret) and the expected form."""


class Settings(msgspec.Struct, frozen=True):
    """The operator's settings, read once at start. None means unset."""

    database_url: str | None
    read_database_urls: tuple[str, ...]  # one host each
    replica_lag_s: float
    ready_lag_s: float
    redis_url: str | None
    ogmios_urls: dict[str, str]  # by network name; networks without an address are absent
    bootstrap_admin_key: str | None
    api_host: str
    api_port: int
    token_registry_url: str | None
    trusted_proxies: tuple[IPNetwork, ...]
    usage_minutes_days: int
    usage_hours_days: int
    audit_reads_days: int
    submitted_days: int
    data_dir: Path  # absolute
    log_level: str
    log_format: str | None  # None: console on a terminal, else json
    access_log: bool

    def __repr__(self) -> str:
        """Without the values: addresses and keys are secrets, and a repr may appear in logs."""
        return "Settings(...)"


def read(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of this process. An empty variable counts as unset, since compose files pass empty ones.

    For each variable, `<name>_FILE` may name a file that contains the value. Raises SettingsError for the first invalid
    variable.
    """

    def take(name: str, parse: Callable[[str], Value], expected: str, show: Callable[[str], str]) -> Value | None:
        text, path = environ.get(name, "").strip(), environ.get(f"{name}_FILE", "").strip()
        if not path:
            return _parsed(name, text, parse, expected, show) if text else None
        if text:
            raise SettingsError(f"{name} and {name}_FILE are both set, expected one of them")
        text = _parsed(f"{name}_FILE", path, _content, "a text file that can be read", repr)
        return _parsed(f"{name} in {path}", text, parse, expected, show) if text else None

    postgres = "postgresql://user:password@host:port/database"
    return Settings(
        database_url=take("DATABASE_URL", _postgres_url, postgres, masked),
        read_database_urls=take("READ_DATABASE_URL", _postgres_urls, f"{postgres}, several with commas", masked) or (),
        replica_lag_s=take("REPLICA_LAG_S", _seconds, _SECONDS, repr) or 10.0,
        ready_lag_s=take("READY_LAG_S", _seconds, _SECONDS, repr) or 300.0,
        redis_url=take("REDIS_URL", _redis_url, _REDIS_URL, masked),
        ogmios_urls={
            network.name: url
            for network in NETWORKS
            if (url := take(f"OGMIOS_URL_{network.name.upper()}", _ogmios_url, OGMIOS_URL, masked)) is not None
        },
        bootstrap_admin_key=take(_BOOTSTRAP, _admin_key, "iiak_admin_ and 40 hex characters", lambda _: _SECRET),
        api_host=take("API_HOST", _host, "a host name or an IP address", repr) or "127.0.0.1",
        api_port=take("API_PORT", _port, "a port from 1 to 65535", repr) or 8080,
        token_registry_url=take(
            "TOKEN_REGISTRY_URL", _registry_url, "an http:// or https:// address that contains {subject}", masked
        ),
        trusted_proxies=take("TRUSTED_PROXIES", _proxies, "networks like 10.0.0.0/8, several with commas", repr) or (),
        usage_minutes_days=take("USAGE_MINUTES_DAYS", _days, _DAYS, repr) or 400,
        usage_hours_days=take("USAGE_HOURS_DAYS", _days, _DAYS, repr) or 800,
        audit_reads_days=take("AUDIT_READS_DAYS", _days, _DAYS, repr) or 90,
        submitted_days=take("SUBMITTED_DAYS", _days, _DAYS, repr) or 7,
        data_dir=take("DATA_DIR", _folder, "a folder, existing or not", repr) or Path(".data").absolute(),
        log_level=take("LOG_LEVEL", _one_of(LOG_LEVELS), " or ".join(LOG_LEVELS), repr) or "info",
        log_format=take("LOG_FORMAT", _one_of(LOG_FORMATS), " or ".join(LOG_FORMATS), repr),
        access_log=take("ACCESS_LOG", _one_of(_SWITCH), " or ".join(_SWITCH), repr) != "off",
    )


def effective(settings: Settings) -> dict[str, str]:
    """The settings in effect by variable, without secrets, as an operator may show them to others."""

    def address(url: str | None, otherwise: str) -> str:
        return otherwise if url is None else masked(url).strip("'")

    urls = {f"OGMIOS_URL_{network.name.upper()}": settings.ogmios_urls.get(network.name) for network in NETWORKS}
    return {
        "DATABASE_URL": address(settings.database_url, "(unset: an embedded PostgreSQL in DATA_DIR)"),
        "READ_DATABASE_URL": ", ".join(address(url, "") for url in settings.read_database_urls) or "(as DATABASE_URL)",
        "REPLICA_LAG_S": f"{settings.replica_lag_s:g}",
        "READY_LAG_S": f"{settings.ready_lag_s:g}",
        "REDIS_URL": address(settings.redis_url, "(unset: an embedded Valkey in DATA_DIR)"),
        **{name: address(url, _UNSET) for name, url in urls.items()},
        _BOOTSTRAP: _UNSET if settings.bootstrap_admin_key is None else _SECRET,
        "API_HOST": settings.api_host,
        "API_PORT": str(settings.api_port),
        "TOKEN_REGISTRY_URL": address(settings.token_registry_url, "(unset: no registry is queried)"),
        "TRUSTED_PROXIES": ", ".join(map(str, settings.trusted_proxies)) or _UNSET,
        "USAGE_MINUTES_DAYS": str(settings.usage_minutes_days),
        "USAGE_HOURS_DAYS": str(settings.usage_hours_days),
        "AUDIT_READS_DAYS": str(settings.audit_reads_days),
        "SUBMITTED_DAYS": str(settings.submitted_days),
        "DATA_DIR": str(settings.data_dir),
        "LOG_LEVEL": settings.log_level,
        "LOG_FORMAT": settings.log_format or "(unset: console on a terminal, else json)",
        "ACCESS_LOG": "on" if settings.access_log else "off",
    }


_UNSET = "(unset)"
_BOOTSTRAP, _SECRET = "BOOTSTRAP_ADMIN_KEY", "(not shown)"
_SWITCH = ("on", "off")
_REDIS_URL = "redis://, rediss://, unix://, redis+sentinel:// or rediss+sentinel:// and an address"
_SECONDS = "seconds in decimal digits, more than 0 and less than 1000000000"
_DAYS = "a number of days from 1 to 36500"
OGMIOS_URL = "ws:// or wss:// and the address of Ogmios"


def ogmios_url(name: str, text: str) -> str:
    """The address of Ogmios from the command line option `name`. Raises SettingsError."""
    return _parsed(name, text, _ogmios_url, OGMIOS_URL, masked)


def issued_bootstrap_key() -> SettingsError:
    """The refusal of a bootstrap key that was issued to a partner: one key can't be two callers."""
    return SettingsError(f"{_BOOTSTRAP} is {_SECRET}, expected a key that was not issued to a partner")


def unusable_database(url: str, cause: Exception) -> SettingsError:
    """The refusal of a database that answers but rejects our credentials."""
    return SettingsError(f"DATABASE_URL is {masked(url)}, expected a database that accepts the connection: {cause}")


def silent_database(url: str, cause: Exception) -> SettingsError:
    """The refusal of a database that can't be reached, or does not answer in time."""
    if url:
        return SettingsError(f"DATABASE_URL is {masked(url)}, expected a database that answers: {_named(cause)}")
    return SettingsError(f"the embedded Postgres (DATABASE_URL is unset) does not answer: {_named(cause)}")


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


def _named(cause: Exception) -> str:
    """An error with its kind; some have no text."""
    return f"{type(cause).__name__}: {cause}".rstrip(": ")


def _parsed(name: str, text: str, parse: Callable[[str], Value], expected: str, show: Callable[[str], str]) -> Value:
    try:
        return parse(text)
    except libpq.Unsupported as cause:
        raise SettingsError(f"{name} is {show(text)}, expected {cause}") from None
    except (ValueError, OSError) as cause:
        # NOTE: without the text of a ValueError, which may quote the value.
        why = f": {cause.strerror}" if isinstance(cause, OSError) and cause.strerror else ""
        raise SettingsError(f"{name} is {show(text)}, expected {expected}{why}") from None


def _content(path: str) -> str:
    return Path(path).expanduser().read_text().strip()


def _url(text: str, *schemes: str) -> str:
    parts = urlsplit(text)
    if parts.scheme not in schemes or re.search(r"\s", text) or parts.port == 0:
        raise ValueError
    return text


def _postgres_url(text: str) -> str:
    """Checks the parameters that libpq knows; others are settings of the session, which Postgres checks."""
    each = hosts.each(text)
    for url in each:
        if len(each) > 1:
            _with_host(url)
        _url(url, "postgresql", "postgres")
    libpq.check(text)
    return text


def _postgres_urls(text: str) -> tuple[str, ...]:
    """Addresses separated by commas; each host of an address with several hosts is a replica."""
    urls = [_postgres_url(url.strip()) for url in re.split(r",\s*(?=\w+://)", text)]
    if any("," in urlsplit(url).path for url in urls):
        raise ValueError
    return tuple(host for url in urls for host in hosts.each(url))


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
