"""The connection to Valkey: every form of REDIS_URL, and every loss of the connection."""

import asyncio
import itertools
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dramatiq
import pytest
import redis
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from redis.exceptions import RedisError, ResponseError

from api.keys import valkey as valkeys
from api.keys.valkey import packed
from api.usage.queue import ACTOR, QUEUE, broker_at
from shared import redis_url
from tests import programs
from tests.api.own_valkey import OwnSentinel, OwnValkey
from tests.chain.harness import until
from tests.patience import PATIENCE_S
from tests.ports import free_port

LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
ECHO = packed(b"ECHO", b"hello")


@pytest.fixture
def own(tmp_path: Path) -> Iterator[OwnValkey]:
    """A separate Valkey for this test."""
    server = OwnValkey(tmp_path / "valkey")
    server.start()
    yield server
    server.kill()


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Callable[[Coroutine[Any, Any, None]], None]:
    """Runs a coroutine on each of the loops, whose sockets differ."""

    def to_its_end(work: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=LOOPS[request.param]) as runner:
            runner.run(work)

    return to_its_end


Run = Callable[[Coroutine[Any, Any, None]], None]


async def answers(url: str) -> None:
    """Assert that Valkey answers at an address, also with large replies, and each concurrent request with its own."""
    async with valkeys.opened(url) as valkey:
        await valkey.ping()
        texts = [b"%d" % number * (number * 100 + 1) for number in range(100)]
        assert await valkey.ask_all(packed(b"ECHO", text) for text in texts) == texts


def test_every_form_of_an_address_connects(run: Run, own: OwnValkey) -> None:
    server: Any = own.client
    server.config_set("requirepass", "s3cret word")
    server.acl_setuser("someone", enabled=True, passwords=["+other"], commands=["+@all"], keys=["*"])
    place = own.url.removeprefix("redis://").removesuffix("/0")
    run(answers(f"redis://:s3cret%20word@{place}/0"))
    run(answers(f"redis://someone:other@{place}/0?protocol=3&socket_timeout=1"))
    run(answers(f"redis://someone:other@{place}/0?protocol=2&decode_responses=true"))
    with pytest.raises(RedisError):
        run(answers(f"redis://:wrong@{place}/0"))


def test_a_unix_socket_connects(run: Run, own: OwnValkey, tmp_path: Path) -> None:
    async def through_a_file() -> None:
        async with forwarding(own, lambda handler: asyncio.start_unix_server(handler, tmp_path / "socket")):
            await answers(f"unix://{tmp_path}/socket?db=2")

    run(through_a_file())


def test_tls_connects(run: Run, own: OwnValkey, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path))

    async def encrypted() -> None:
        async with forwarding(own, lambda handler: asyncio.start_server(handler, "127.0.0.1", 0, ssl=context)) as port:
            await answers(f"rediss://127.0.0.1:{port}/1?ssl_cert_reqs=none&ssl_check_hostname=false")
            with pytest.raises(RedisError):
                await answers(f"rediss://127.0.0.1:{port}/1")

    run(encrypted())


@programs.needs("redis-server")
def test_a_tls_server_is_verified_by_its_authority(run: Run, tmp_path: Path) -> None:
    file = certificate(tmp_path)
    port = free_port()
    tls = {"tls-port": port, "tls-cert-file": file, "tls-key-file": file, "tls-ca-cert-file": file}
    words = [str(word) for name, value in ({"port": 0} | tls).items() for word in (f"--{name}", value)]
    server = subprocess.Popen(
        ["redis-server", "--dir", str(tmp_path), "--tls-auth-clients", "no", *words], stdout=subprocess.DEVNULL
    )
    try:
        url = f"rediss://127.0.0.1:{port}/1?ssl_ca_certs={file}"
        until("Redis answers", lambda: _answers(redis_url.client(url)))
        run(answers(url))
        broker_at(url).enqueue(_message())
        with pytest.raises(RedisError):
            run(answers(f"rediss://127.0.0.1:{port}/1"))
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[str, list[OwnValkey]]]:
    """A primary, its replica and three Sentinels, and their address for clients."""
    primary = OwnValkey(tmp_path / "primary")
    primary.start()
    replica = OwnValkey(tmp_path / "replica", replicaof=f"127.0.0.1 {primary.port}")
    replica.start()
    sentinels = [OwnSentinel(tmp_path / f"sentinel-{number}", "queue", primary) for number in (1, 2, 3)]
    for sentinel in sentinels:
        sentinel.start()
    everybody = [primary, replica, *sentinels]
    try:
        yield f"redis+sentinel://{','.join(f'127.0.0.1:{each.port}' for each in sentinels)}/queue/1", everybody
    finally:
        for server in everybody:
            server.kill()


@pytest.mark.parametrize("loss", ["kill", "freeze", "switch"])
def test_sentinels_lead_to_the_new_primary(run: Run, watched: tuple[str, list[OwnValkey]], loss: str) -> None:
    url, (primary, replica, first, second, third) = watched
    broker = broker_at(url)
    until("the Sentinels know each other", lambda: _knows_all(second) and _knows_all(third))
    until("an answer through them", lambda: _answers(broker.client))
    broker.enqueue(_message())

    async def outlived() -> None:
        async with valkeys.opened(url) as valkey:
            await valkey.ask(packed(b"SET", b"a", b"1"))
            if loss == "switch":
                sentinel: Any = second.client
                sentinel.execute_command("SENTINEL", "FAILOVER", "queue")
            else:
                getattr(primary, loss)()
                first.freeze()
            deadline = asyncio.get_running_loop().time() + PATIENCE_S
            for number in itertools.count():
                await asyncio.sleep(0.05)
                with suppress(RedisError, OSError):
                    await valkey.ask(packed(b"SET", b"b", b"%d" % number))
                    if server.role()[0] == b"master" and server.get("b") == b"%d" % number:
                        break
                assert asyncio.get_running_loop().time() < deadline

    server: Any = redis.Redis.from_url(replica.url.removesuffix("/0") + "/1")
    run(outlived())

    def queued() -> bool:
        with suppress(RedisError, OSError, dramatiq.errors.BrokerConnectionError):
            broker.enqueue(_message())
            return True
        return False

    until("the queue is reached", queued)


def _message() -> dramatiq.Message[None]:
    return dramatiq.Message(queue_name=QUEUE, actor_name=ACTOR, args=(), kwargs={}, options={})


def _answers(client: redis.Redis) -> bool:
    try:
        return bool(client.ping())
    except (RedisError, OSError):
        return False


def _knows_all(sentinel: OwnValkey) -> bool:
    try:
        server: Any = sentinel.client
        (told,) = server.sentinel_masters().values()
        return (told["num-slaves"], told["num-other-sentinels"]) == (1, 2)
    except (RedisError, OSError):
        return False


def test_the_database_of_the_address_is_used(run: Run, own: OwnValkey) -> None:
    async def written() -> None:
        async with valkeys.opened(own.url.removesuffix("/0") + "/3") as valkey:
            assert await valkey.ask(packed(b"SET", b"where", b"three")) in (b"OK", "OK")

    run(written())
    server: Any = own.client
    server.select(3)
    assert server.get("where") == b"three"


def test_an_error_belongs_to_its_command(run: Run, own: OwnValkey) -> None:
    async def some_are_wrong() -> None:
        async with valkeys.opened(own.url) as valkey:
            wrong = packed(b"NO-SUCH-COMMAND")
            commands = [wrong, ECHO, wrong, ECHO]
            told = await asyncio.gather(*(valkey.ask(command) for command in commands), return_exceptions=True)
            assert [type(reply) for reply in told] == [ResponseError, bytes, ResponseError, bytes]

    run(some_are_wrong())


def test_a_cancelled_caller_takes_no_reply_from_another(run: Run, own: OwnValkey) -> None:
    async def some_leave() -> None:
        async with valkeys.opened(own.url) as valkey:
            await valkey.ping()
            texts = [b"%d" % number for number in range(50)]
            asking = [asyncio.ensure_future(valkey.ask(packed(b"ECHO", text))) for text in texts]
            await asyncio.sleep(0)
            for task in asking[::2]:
                task.cancel()
            told = await asyncio.gather(*asking, return_exceptions=True)
            assert told[1::2] == texts[1::2]
            assert await valkey.ask(ECHO) == b"hello"

    run(some_leave())


def test_a_cut_connection_is_reopened_transparently(run: Run, own: OwnValkey) -> None:
    async def cut() -> None:
        async with valkeys.opened(own.url) as valkey:
            await valkey.ping()
            for _ in range(5):
                own.client.client_kill_filter(_type="normal", skipme=True)
                assert await valkey.ask_all([ECHO] * 20) == [b"hello"] * 20
            server: Any = own.client
            assert len([one for one in server.client_list() if one["lib-name"].startswith("redis-py")]) <= 3

    run(cut())


def test_without_a_server_callers_fail_at_once_and_recover_with_it(run: Run, own: OwnValkey) -> None:
    async def killed() -> None:
        async with valkeys.opened(own.url) as valkey:
            await valkey.ping()
            own.kill()
            told = await asyncio.gather(*(valkey.ask(ECHO) for _ in range(20)), return_exceptions=True)
            assert all(isinstance(reply, RedisError | OSError) for reply in told)
            own.start()
            assert await valkey.ask(ECHO) == b"hello"

    run(killed())


@pytest.mark.parametrize("connected", [True, False])
def test_a_silent_server_times_out(run: Run, own: OwnValkey, connected: bool) -> None:
    async def frozen() -> None:
        loop = asyncio.get_running_loop()
        async with valkeys.opened(own.url) as valkey:
            if connected:
                await valkey.ping()
            own.freeze()
            began = loop.time()
            told = await asyncio.gather(*(valkey.ask(ECHO) for _ in range(20)), return_exceptions=True)
            assert all(isinstance(reply, RedisError | OSError) for reply in told), told
            assert 1 < loop.time() - began < 3  # an existing connection is also given up after 2 s
            own.thaw()
            assert await valkey.ask(ECHO) == b"hello"

    run(frozen())


@asynccontextmanager
async def forwarding(own: OwnValkey, start: Callable[[Any], Any]) -> AsyncIterator[int | None]:
    """A second way to a Valkey; yields its port, if any."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inside = await asyncio.open_connection("127.0.0.1", urlsplit(own.url).port)
        await asyncio.gather(copy(reader, inside[1]), copy(inside[0], writer), return_exceptions=True)

    async with await start(forward) as server:
        name = server.sockets[0].getsockname()
        yield name[1] if isinstance(name, tuple) else None


def certificate(folder: Path) -> Path:
    """A key and a self-signed certificate, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(IPv4Address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
        .public_bytes(serialization.Encoding.PEM)
    )
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    file = folder / "certificate.pem"
    file.write_bytes(key.private_bytes(*plain) + made)
    return file
