"""Requests to addresses that strangers choose, such as the URLs in certificates: never into a private network.

Anybody may register a URL that names a host of the operator's own network and let this service request it (server-side
request forgery). A request here reaches only public addresses, on ports of web servers:

- The address of each connection is checked just before the socket connects, after the name was resolved. So the check
  also applies to redirects, to addresses in place of names, and to a name that resolves differently the next time.
- A name with any address that is not public is refused, even if it has public ones, too.
- URLs must be http or https and have no user or password. Settings of a proxy in the environment are ignored.
- The whole request is bounded in time, its answer in bytes, its redirects in number. Nothing is decompressed, no cookie
  is kept, and a connection only if that was asked for: its address was checked when it was opened.

It does not know which public addresses belong to the operator: only a firewall can keep these apart.

Use `opened` for any request whose URL comes from outside, and show callers no more of a `Refused` or an OSError than
that the server can't be reached: the difference would tell them about the private network.
"""

import asyncio
import ipaddress
import socket
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import lru_cache
from threading import Thread
from typing import NamedTuple
from weakref import WeakSet

import aiohttp
import msgspec
from aiohttp.abc import AbstractResolver, ResolveResult
from yarl import URL

PORTS = (80, 443, 8080, 8443)
"""Those of web servers: no other service of a host that trusts our address is reached through us."""

MOST_LOOK_UPS = 8
"""How many names are resolved at the same time, each in a thread."""

KEPT_S = 75.0
"""How long an unused connection is kept, if connections are. Blocks of mainnet come 20 s apart, most of them."""

_THIS_HOST = ("127.0.0.1", "::1")
_CHUNK_BYTES = 16_384
_IGNORED_WITHIN_S = 1.0
_MOST_PARSED = 4_096  # URLs of `post`, which sends to the same ones again and again
_REDIRECTS = (301, 302, 303, 307, 308)

# The special addresses of IANA's registries; of IPv6, everything outside 2000::/3 as well. Python's own `is_global` is
# not used, since its answers depend on Python's version.
_NOT_PUBLIC_IPV4 = [
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",  # the platform's own server inside each virtual network of Azure
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
]
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_IPV6 = [
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocols, such as Teredo, which contains an IPv4 address
        "2001:db8::/32",
        "2002::/16",  # 6to4, which contains an IPv4 address
        "3fff::/20",
    )
]
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")  # how a host without IPv4 reaches one: its last 32 bits are the address


class Refused(OSError):
    """A URL or an address that is not requested. The text names it: for logs only."""


class TooLong(Exception):
    """The answer has more bytes than were asked for."""


class Reply(msgspec.Struct, frozen=True):
    """An answer: its status, its body as received, and the URL that gave it, after redirects."""

    status: int
    body: bytes
    url: str


class Rules(NamedTuple):
    """Which addresses, ports and schemes may be connected to, and how names are resolved, in a thread.

    NOTE: tests pass others, to reach servers of their own.
    """

    allows: Callable[[str], bool]
    ports: frozenset[int] | None
    look_up: Callable[[str], list[str]]
    schemes: tuple[str, ...] = ("https", "http")


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the Internet at large. Any text that is not an IP address does not."""
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, ipaddress.IPv4Address):
        return not any(parsed in network for network in _NOT_PUBLIC_IPV4)
    if parsed in _NAT64:
        return is_public(str(ipaddress.IPv4Address(int(parsed) & 0xFFFF_FFFF)))
    return parsed in _GLOBAL_UNICAST and not any(parsed in network for network in _NOT_PUBLIC_IPV6)


def _look_up(host: str) -> list[str]:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


PUBLIC = Rules(is_public, frozenset(PORTS), _look_up)


def webhook_rules(*, local: bool) -> Rules:
    """The rules for webhooks: only https or, for development, also http and addresses of this host, on any port."""
    if local:
        return Rules(lambda address: is_public(address) or address in _THIS_HOST, None, _look_up)
    return PUBLIC._replace(schemes=("https",))


def parsed(url: str, rules: Rules, base: URL | None = None) -> URL:
    """A URL, perhaps relative to another.

    Raises Refused if it is not requested, whatever the address of its host's name.
    """
    try:
        found = URL(url) if base is None else base.join(URL(url))
        host, port = found.host, found.port
    except ValueError as cause:
        raise Refused(f"{url!r} is not a URL: {cause}") from cause
    if found.scheme not in rules.schemes or not host:
        raise Refused(f"{url!r} is not an {' or '.join(f'{scheme}://' for scheme in rules.schemes)} URL")
    if found.user is not None or found.password is not None:
        raise Refused(f"the URL for {host} contains a user")
    if rules.ports is not None and port not in rules.ports:
        raise Refused(f"{url!r} has the port {port}, which is none of a web server")
    with suppress(ValueError):
        _refuse_unless_allowed(rules, str(ipaddress.ip_address(host)), "the URL's host")
    return found.with_fragment(None)


class Egress:
    """Sends such requests. Made by `opened`."""

    def __init__(
        self,
        closing: aiohttp.ClientSession,
        keeping: aiohttp.ClientSession,
        rules: Rules,
        sockets: Collection[socket.socket],
        most_kept: int,
    ) -> None:
        self._closing, self._keeping, self._rules = closing, keeping, rules
        self._sockets, self._most_kept = sockets, most_kept

    async def send(
        self,
        method: str,
        url: str,
        *,
        within_s: float,
        most_bytes: int,
        redirects: int = 0,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send a request, and read its answer of at most `most_bytes` bytes, all within `within_s`.

        At most `redirects` redirects are followed, with the same method and body; then the redirect is the answer.
        Raises Refused, TooLong, TimeoutError, or the error of a connection: OSError or aiohttp.ClientError.
        """
        async with asyncio.timeout(within_s):
            target = parsed(url, self._rules)
            while True:
                reply, location = await self._send_once(method, target, most_bytes, body, headers)
                if location is None or redirects == 0:
                    return reply
                target, redirects = parsed(location, self._rules, target), redirects - 1

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, within_s: float) -> int:
        """Send a body; returns the status of the answer. Redirects are not followed, and the answer's body is ignored.

        Raises Refused, TimeoutError, or the error of a connection: OSError or aiohttp.ClientError.
        """
        async with asyncio.timeout(within_s):
            target = _parsed_again(url, self._rules)
            try:
                return await self._post_once(target, body, headers)
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as cause:
                # NOTE: the server may close a kept connection just when it is used again.
                if isinstance(cause, aiohttp.ClientConnectorError):
                    raise
                return await self._post_once(target, body, headers)

    async def _post_once(self, target: URL, body: bytes, headers: Mapping[str, str]) -> int:
        session = self._keeping if len(self._sockets) < self._most_kept else self._closing
        with _named_refusals():
            async with session.post(target, data=body, headers=headers, allow_redirects=False) as response:
                if not await _is_short(response.content):
                    response.close()
                return response.status

    async def _send_once(
        self, method: str, target: URL, most_bytes: int, body: bytes | None, headers: Mapping[str, str] | None
    ) -> tuple[Reply, str | None]:
        """The answer of one server and, if it is a redirect, its location."""
        sent = {"Accept-Encoding": "identity", **(headers or {})}
        with _named_refusals():
            async with self._closing.request(
                method, target, data=body, headers=sent, allow_redirects=False
            ) as response:
                location = response.headers.get("Location") if response.status in _REDIRECTS else None
                if location is not None:
                    return Reply(response.status, b"", str(target)), location
                received = b""
                async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
                    received += chunk
                    if len(received) > most_bytes:
                        raise TooLong(f"more than {most_bytes} bytes")
                return Reply(response.status, received, str(target)), None


_parsed_again = lru_cache(_MOST_PARSED)(parsed)


@asynccontextmanager
async def opened(rules: Rules = PUBLIC, *, most_kept: int = 0, look_ups: int = MOST_LOOK_UPS) -> AsyncIterator[Egress]:
    """Open what sends such requests, resolving so many names at a time.

    `post` keeps connections for KEPT_S, unless `most_kept` are open.
    """
    sockets = WeakSet[socket.socket]()

    def checked_socket(found: tuple[int, int, int, str, tuple[object, ...]]) -> socket.socket:
        family, kind, protocol, _, address = found
        _refuse_unless_allowed(rules, str(address[0]), "the URL's host")
        made = socket.socket(family, kind, protocol)
        sockets.add(made)
        return made

    def session(*, keeps: bool) -> aiohttp.ClientSession:
        connector = aiohttp.TCPConnector(
            resolver=_Resolver(rules, look_ups),
            use_dns_cache=False,
            limit=0,  # callers bound how many requests there are
            socket_factory=checked_socket,
            **({"keepalive_timeout": KEPT_S} if keeps else {"force_close": True}),
        )
        return aiohttp.ClientSession(
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            timeout=aiohttp.ClientTimeout(total=None),  # `send` and `post` have their own
        )

    async with session(keeps=False) as closing, session(keeps=True) as keeping:
        yield Egress(closing, keeping, rules, sockets, most_kept)


async def _is_short(content: aiohttp.StreamReader) -> bool:
    """Whether a body ends soon, after which its connection can be used again. Nothing else of it matters."""
    if content.at_eof():
        return True
    received = 0
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(_IGNORED_WITHIN_S):
            while received <= _CHUNK_BYTES and (chunk := await content.readany()):
                received += len(chunk)
            return content.at_eof()
    return False


@contextmanager
def _named_refusals() -> Iterator[None]:
    """Raise what was refused while connecting as itself."""
    try:
        yield
    except aiohttp.ClientConnectorError as cause:
        if isinstance(cause.os_error, Refused):
            raise cause.os_error from cause
        raise


def _refuse_unless_allowed(rules: Rules, address: str, host: str) -> None:
    if not rules.allows(address):
        raise Refused(f"{host} has the address {address}, which is not public")


class _Resolver(AbstractResolver):
    """Resolves names to public addresses, in threads of its own.

    The threads are daemons: a server of names that does not answer neither keeps a process from ending nor uses up the
    threads in which others resolve names.
    """

    def __init__(self, rules: Rules, look_ups: int) -> None:
        self._rules = rules
        self._free = asyncio.Semaphore(look_ups)

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_INET,  # noqa: ARG002 - the addresses of both families are judged
    ) -> list[ResolveResult]:
        """The addresses of a host. Raises Refused if one is not public, or OSError."""
        addresses = await self._look_up(host)
        for address in addresses:
            _refuse_unless_allowed(self._rules, address, host)
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
        ]

    async def close(self) -> None:
        """Nothing is kept open."""

    async def _look_up(self, host: str) -> list[str]:
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        found: asyncio.Future[list[str]] = loop.create_future()

        def settle(addresses: list[str], cause: Exception | None) -> None:
            self._free.release()
            if found.done():  # nobody waits any more
                return
            if cause is None:
                found.set_result(addresses)
            else:
                found.set_exception(OSError(f"{host} can't be resolved: {cause}"))

        def look_up() -> None:
            addresses: list[str] = []
            cause: Exception | None = None
            try:
                addresses = self._rules.look_up(host)
            except Exception as raised:  # noqa: BLE001 - whoever waits must hear of it
                cause = raised
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(settle, addresses, cause)

        try:
            Thread(target=look_up, daemon=True, name="look-up").start()
        except RuntimeError as cause:  # too many threads
            self._free.release()
            raise OSError(f"{host} can't be resolved now: {cause}") from cause
        return await found
