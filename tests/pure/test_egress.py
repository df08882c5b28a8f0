"""Requests to addresses from outside: what is never connected to, and what bounds them."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import aiohttp
import pytest

from api.sources import egress

REFUSED = [
    "0.0.0.0",
    "10.1.2.3",
    "100.64.0.1",
    "127.0.0.1",
    "127.8.8.8",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.168.1.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:db8::1",
    "2002:7f00:1::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%lo",
    "fec0::1",
    "ff02::1",
    "2130706433",
    "127.1",
    "localhost",
    "",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "100.63.255.255",
    "172.32.0.1",
    "223.255.255.255",
    "2606:4700::1111",
    "64:ff9b::8.8.8.8",
]


@pytest.mark.parametrize("address", REFUSED)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    assert not egress.is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert egress.is_public(address)


class Listener:
    """A server on a loopback address that counts connections, and answers each with the same bytes."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.requests: list[bytes] = []
        self.answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        self.pause_s = 0.0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection."""
        self.connections += 1
        self.requests.append(await reader.readuntil(b"\r\n\r\n"))
        for number in range(len(self.answer)):
            writer.write(self.answer[number : number + 1])
            if self.pause_s:
                await asyncio.sleep(self.pause_s)
        writer.close()


@asynccontextmanager
async def listening(host: str = "127.0.0.1") -> AsyncIterator[Listener]:
    listener = Listener()
    server = await asyncio.start_server(listener.serve, host, 0)
    listener.port = server.sockets[0].getsockname()[1]
    async with server:
        yield listener


def resolving(**names: str) -> Callable[[str], list[str]]:
    """A look-up that knows these names, with `_` for `.`."""
    return lambda host: names[host.replace(".", "_")].split()


def open_to(*addresses: str, **names: str) -> egress.Rules:
    """Rules that allow these addresses, and every port."""
    return egress.Rules(lambda address: address in addresses, None, resolving(**names))


async def get(
    rules: egress.Rules, url: str, redirects: int = 5, within_s: float = 5, most_bytes: int = 512
) -> egress.Reply:
    async with egress.opened(rules) as out:
        return await out.send("GET", url, within_s=within_s, most_bytes=most_bytes, redirects=redirects)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "localhost",
        "private.example",
        "mixed.example",
        "2130706433",
        "127.1",
        "0x7f.1",
        "0177.0.0.1",
        "0.0.0.0",
        "\uff11\uff12\uff17.0.0.1",
    ],
)
async def test_a_private_address_is_never_connected_to(host: str) -> None:
    """The rules are those of production, except for ports and for names that no server of names knows."""
    names = {"private.example": ["127.0.0.1"], "mixed.example": ["8.8.8.8", "127.0.0.1"]}

    def look_up(name: str) -> list[str]:
        return names.get(name) or egress.PUBLIC.look_up(name)

    rules = egress.PUBLIC._replace(ports=None, look_up=look_up)
    async with listening() as listener:
        with pytest.raises((OSError, aiohttp.ClientError)):
            await get(rules, f"http://{host}:{listener.port}/")
        assert listener.connections == 0


async def test_a_name_that_resolves_to_a_private_address_only_when_connected_to_is_refused() -> None:
    """The socket is checked as well, not only the resolver's answer, which is allowed here."""
    answers = iter((True, False))
    rules = egress.Rules(lambda _: next(answers), None, resolving(twice_example="127.0.0.1"))
    async with listening() as listener:
        with pytest.raises(egress.Refused):
            await get(rules, f"http://twice.example:{listener.port}/")
        assert listener.connections == 0


async def test_a_redirect_to_a_private_address_is_refused() -> None:
    async with listening() as public, listening("127.0.0.2") as private:
        rules = open_to("127.0.0.1", pool_example="127.0.0.1", inside_example="127.0.0.2")
        for location in (f"http://127.0.0.2:{private.port}/", f"http://inside.example:{private.port}/"):
            public.answer = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()
            with pytest.raises(egress.Refused):
                await get(rules, f"http://pool.example:{public.port}/")
        assert (public.connections, private.connections) == (2, 0)


@pytest.mark.parametrize(
    "location",
    ["ftp://pool.example/", "file:///etc/passwd", "//u:p@pool.example/", "http://pool.example:99999/"],
)
async def test_a_redirect_to_another_scheme_is_refused(location: str) -> None:
    async with listening() as listener:
        listener.answer = f"HTTP/1.1 301 Moved\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode()
        with pytest.raises(egress.Refused):
            await get(open_to("127.0.0.1", pool_example="127.0.0.1"), f"http://pool.example:{listener.port}/")
        assert listener.connections == 1


async def test_redirects_are_followed_up_to_their_number() -> None:
    async with listening() as listener:
        listener.answer = b"HTTP/1.1 307 Again\r\nLocation: next\r\nContent-Length: 0\r\n\r\n"
        rules = open_to("127.0.0.1", pool_example="127.0.0.1")
        reply = await get(rules, f"http://pool.example:{listener.port}/a/b", redirects=3)
        assert reply == egress.Reply(307, b"", f"http://pool.example:{listener.port}/a/next")
        assert listener.connections == 4


@pytest.mark.parametrize(
    "url",
    [
        "http://pool.example:6379/",
        "https://pool.example:22/",
        "ftp://pool.example/",
        "ipfs://bafy/",
        "pool.example/x.json",
        "http:///x.json",
        "http://user:secret@pool.example/",
        "https://user@pool.example/",
        "http://pool.example:port/",
        "http://[::1/",
        "",
        "data:application/json,{}",
    ],
)
async def test_a_url_is_refused_before_its_host_is_resolved(url: str) -> None:
    asked: list[str] = []

    def look_up(host: str) -> list[str]:
        asked.append(host)
        return ["8.8.8.8"]

    with pytest.raises(egress.Refused) as refused:
        await get(egress.PUBLIC._replace(look_up=look_up), url)
    assert asked == []
    assert "secret" not in str(refused.value)


async def test_an_answer_is_bounded_in_bytes() -> None:
    async with listening() as listener:
        rules = open_to("127.0.0.1", pool_example="127.0.0.1")
        listener.answer = b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 512
        reply = await get(rules, f"http://pool.example:{listener.port}/#part")
        assert reply == egress.Reply(200, b"x" * 512, f"http://pool.example:{listener.port}/")
        listener.answer += b"x"
        with pytest.raises(egress.TooLong):
            await get(rules, f"http://pool.example:{listener.port}/")


async def test_a_compressed_answer_stays_as_received() -> None:
    async with listening() as listener:
        listener.answer = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc"
        reply = await get(open_to("127.0.0.1", pool_example="127.0.0.1"), f"http://pool.example:{listener.port}/")
        assert reply.body == b"abc"
        assert b"Accept-Encoding: identity" in listener.requests[0]


async def test_a_slow_answer_is_given_up_however_slowly_it_trickles() -> None:
    async with listening() as listener:
        listener.pause_s = 0.05
        began = time.monotonic()
        with pytest.raises(TimeoutError):
            await get(
                open_to("127.0.0.1", pool_example="127.0.0.1"), f"http://pool.example:{listener.port}/", within_s=0.4
            )
        assert time.monotonic() - began < 2


async def test_look_ups_that_never_end_are_given_up_and_bounded() -> None:
    release = asyncio.Event()
    loop = asyncio.get_running_loop()
    running = 0

    def look_up(_: str) -> list[str]:
        nonlocal running
        running += 1
        asyncio.run_coroutine_threadsafe(release.wait(), loop).result()
        return ["8.8.8.8"]

    rules = egress.PUBLIC._replace(look_up=look_up)
    async with egress.opened(rules) as out:
        attempts: list[Awaitable[egress.Reply]] = [
            out.send("GET", f"http://{number}.example/", within_s=0.3, most_bytes=1)
            for number in range(2 * egress.MOST_LOOK_UPS)
        ]
        ended = await asyncio.gather(*attempts, return_exceptions=True)
        assert all(isinstance(each, TimeoutError) for each in ended)
        assert running == egress.MOST_LOOK_UPS
        release.set()
        await asyncio.sleep(0.2)


async def test_proxies_of_the_environment_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    async with listening() as listener, listening() as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        await get(open_to("127.0.0.1", pool_example="127.0.0.1"), f"http://pool.example:{listener.port}/")
        assert (listener.connections, proxy.connections) == (1, 0)
