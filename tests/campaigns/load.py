"""Callers with API keys that send requests at a steady rate, and record the answers."""

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec

from devnet.generator import Generated
from tests.campaigns.partner import Key, Partner

ANSWER_WITHIN_S = 20.0
WINDOW_S = 60.0
CLOCK_SLACK_S = 2.0
"""The callers' window is shorter than a minute by this: they see times before and after a request is admitted."""


class CallersSaw:
    """The callers' observations of one key. `broken` are requests without an answer: possibly counted."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.answered: Counter[bool] = Counter()  # by success
        self.broken = 0
        self._admitted: deque[float] = deque()  # when each request of the last minute was sent

    def answer(self, status: int, sent: float, received: float) -> int:
        """Record an answer; returns the number of requests that were certainly admitted in the last minute."""
        self.answered[status < 400] += 1
        began = received - WINDOW_S + CLOCK_SLACK_S
        if status != 429:
            self._admitted.append(sent)
        while self._admitted and self._admitted[0] < began:
            self._admitted.popleft()
        if len(self._admitted) <= self.key.per_minute:
            return len(self._admitted)
        return sum(each >= began for each in self._admitted)  # they are in the order of their answers


class OverLimit(msgspec.Struct, frozen=True):
    """A minute in which a key was admitted more often than its limit."""

    key: Key
    admitted: int
    ended_at: float


class Load:
    """Connections to one port each, with `rate` requests per second in total."""

    def __init__(self, ports: Sequence[int], partner: Partner, paths: Sequence[str], rate: float, count: int) -> None:
        self.seen = [CallersSaw(key) for key in partner.keys]
        self.refused = 0  # before the key was known to be good: not counted
        self.unauthorized = 0  # of the refused ones, those with status 401 or 403: every key in use is valid
        self.broken = 0
        self.excused_until = 0.0  # windows that end before this are not counted as errors
        self.over_limit: list[OverLimit] = []
        self._partner, self._paths = partner, paths
        self._ports, self._every_s, self._count = ports, count / rate, count
        self._go = asyncio.Event()
        self._go.set()
        self._asking = 0

    @property
    def answered(self) -> int:
        """The number of answered requests that count."""
        return sum(seen.answered.total() for seen in self.seen)

    @property
    def requests(self) -> int:
        """The number of requests, answered or not."""
        return self.answered + self.refused + self.broken

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Send requests until the block ends."""
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask(number)) for number in range(self._count)]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()

    async def pause(self) -> None:
        """Wait for the requests in progress, and send no more until `resume`."""
        self._go.clear()
        while self._asking:
            await asyncio.sleep(0.05)

    def resume(self) -> None:
        """Send requests again."""
        self._go.set()

    async def _ask(self, number: int) -> None:
        chance, port = random.Random(number), self._ports[number % len(self._ports)]
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        due = time.monotonic() + self._every_s * number / self._count
        while True:
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            due = max(due + self._every_s, time.monotonic() - self._every_s)
            await self._go.wait()
            seen, path = chance.choice(self.seen), chance.choice(self._paths)
            key = self._partner.texts[seen.key.credential_id]
            request = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
            self._asking += 1
            sent = 0.0
            try:
                async with asyncio.timeout(ANSWER_WITHIN_S):
                    streams = streams or await asyncio.open_connection("127.0.0.1", port)
                    sent = time.monotonic()
                    status, authenticated = await _asked(*streams, request)
            except (OSError, asyncio.IncompleteReadError, TimeoutError):
                if sent:
                    seen.broken += 1
                    self.broken += 1
                if streams is not None:
                    streams[1].transport.abort()
                    streams = None
            else:
                self._note(seen, status, authenticated, sent)
            finally:
                self._asking -= 1

    def _note(self, seen: CallersSaw, status: int, authenticated: bool, sent: float) -> None:
        if not authenticated:
            self.refused += 1
            self.unauthorized += status in (401, 403)
            return
        received = time.monotonic()
        admitted = seen.answer(status, sent, received)
        if admitted > seen.key.per_minute and received > self.excused_until:
            self.over_limit.append(OverLimit(seen.key, admitted, received))
            self.excused_until = received + WINDOW_S  # one window over its limit is reported once


async def _asked(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, request: bytes) -> tuple[int, bool]:
    """The status of an answer, and whether its request counts: it was authenticated, and could be recorded."""
    writer.write(request)
    head = await reader.readuntil(b"\r\n\r\n")
    length = int(head.split(b"Content-Length: ", 1)[1].split(b"\r\n", 1)[0])
    await reader.readexactly(length)
    # NOTE: in every answer, a CORS header contains the name of the first one.
    counts = b"\r\nRateLimit-Limit: " in head and b"\r\nError-Code: usage_not_recorded\r\n" not in head
    return int(head[9:12]), counts


def paths_of(chain: Generated) -> list[str]:
    """The requested paths: addresses and transactions of the chain's first blocks, and missing ones."""
    transactions = [tx for block in chain.blocks[:100] for tx in block.decoded().get("transactions", ())]
    paid = Counter(output["address"] for tx in transactions for output in tx.get("outputs", ()))
    addresses = [address for address, _ in paid.most_common() if address.startswith("addr_test1")][:8]
    return [
        *(f"/v1/tx/history/{address}?limit=20" for address in addresses),
        *(f"/v1/tx/address/{address}?limit=3" for address in addresses[:4]),
        *(f"/v1/tx/hash/{tx['id']}" for tx in transactions[:8]),
        "/v1/tx/history/nonsense",
        f"/v1/tx/hash/{'0' * 64}",
    ]
