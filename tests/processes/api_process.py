"""The API as a process under test, and a request to it."""

import http.client
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.chain.harness import Process
from tests.ports import free_port

BOOTSTRAP_KEY = "iiak_admin_" + "0" * 40


@contextmanager
def running(environment: dict[str, str], tmp_path: Path, *args: str) -> Iterator[tuple[Process, int]]:
    """An API on a free port, which need not answer yet; at the end it is stopped and must end in good order."""
    port = free_port()
    api = Process(["api", "--port", str(port), *args], environment, tmp_path / "api.log")
    try:
        yield api, port
        if api.popen.poll() is None:
            assert api.stop() == 0
    finally:
        api.kill()


def get(port: int, path: str = "/health") -> int | None:
    """The status of an answer; None without an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()
