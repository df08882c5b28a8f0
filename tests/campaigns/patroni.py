"""Three Postgres servers under Patroni: one primary and two streaming standbys, with etcd."""

import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.chain.harness import until
from tests.ports import free_port

PROGRAMS = Path("/usr/lib/postgresql/15/bin")
PASSWORD = "patroni"
FAILS_OVER_WITHIN_S = 90.0


class Member:
    """One server and its Patroni."""

    def __init__(self, name: str, folder: Path, etcd_port: int, *, synchronous: bool) -> None:
        self.name, self._folder = name, folder
        self.port, self._rest_port = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None
        login = {"username": "postgres", "password": PASSWORD}
        settings = {
            "scope": "ledgerline",
            "name": name,
            "restapi": _addresses(self._rest_port),
            "etcd3": {"host": f"127.0.0.1:{etcd_port}"},
            "bootstrap": {
                "dcs": {
                    "ttl": 20,  # the least that Patroni accepts
                    "loop_wait": 1,
                    "retry_timeout": 5,
                    "synchronous_mode": synchronous,
                    "postgresql": {"use_pg_rewind": True, "parameters": {"wal_keep_size": "256MB"}},
                },
                "initdb": [{"encoding": "UTF8"}, "data-checksums"],
            },
            "postgresql": {
                **_addresses(self.port),
                "data_dir": str(folder / name),
                "bin_dir": str(PROGRAMS),
                "pgpass": str(folder / f"{name}.pgpass"),
                "authentication": {"replication": login, "superuser": login},
                "parameters": {"unix_socket_directories": str(folder), "max_connections": 200},
                "pg_hba": ["host all all 127.0.0.1/32 md5", "host replication all 127.0.0.1/32 md5"],
            },
        }
        self.file = folder / f"{name}.yml"
        self.file.write_text(json.dumps(settings))  # JSON is YAML

    def start(self) -> None:
        """Start it; Patroni determines its former role."""
        with (self._folder / f"{self.name}.log").open("ab") as log:
            self._process = _as_postgres(["patroni", str(self.file)], self._folder, log)

    def crash(self) -> None:
        """Kill Patroni and every process of the server with SIGKILL."""
        assert self._process is not None
        whole = psutil.Process(self._process.pid)
        processes = [whole, *whole.children(recursive=True)]
        postmaster = self._folder / self.name / "postmaster.pid"
        if postmaster.exists():  # no longer Patroni's grandchild, once its parent has ended
            server = psutil.Process(int(postmaster.read_text().split()[0]))
            processes += [server, *server.children(recursive=True)]
        for process in dict.fromkeys(processes):
            if process.is_running():
                process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._process = None

    def end(self) -> None:
        """Stop it, in whatever state it is."""
        if self._process is not None:
            self.crash()


class Cluster:
    """The three servers and etcd."""

    def __init__(self, folder: Path, *, synchronous: bool) -> None:
        self._folder, self._synchronous = folder, synchronous
        etcd_port, peer_port = free_port(), free_port()
        urls = {"client": f"http://127.0.0.1:{etcd_port}", "peer": f"http://127.0.0.1:{peer_port}"}
        command = ["etcd", "--data-dir", str(folder / "etcd"), "--initial-cluster", f"default={urls['peer']}"]
        command += ["--listen-client-urls", urls["client"], "--advertise-client-urls", urls["client"]]
        command += ["--listen-peer-urls", urls["peer"], "--initial-advertise-peer-urls", urls["peer"]]
        with (folder / "etcd.log").open("ab") as log:
            self._etcd = _as_postgres(command, folder, log)
        self.members = [Member(name, folder, etcd_port, synchronous=synchronous) for name in ("a", "b", "c")]
        for member in self.members:
            member.start()
        self.is_whole()

    @property
    def urls(self) -> list[str]:
        """The address of each server."""
        return [self._url(f"127.0.0.1:{member.port}") for member in self.members]

    @property
    def url(self) -> str:
        """One address for all servers."""
        return self._url(",".join(f"127.0.0.1:{member.port}" for member in self.members))

    def _url(self, place: str) -> str:
        return f"postgresql://postgres:{PASSWORD}@{place}/postgres?sslmode=disable"

    def leader(self) -> Member | None:
        """The leader, if one answers."""
        for member in self.members:
            if _get(member._rest_port, "/primary") is not None:
                return member
        return None

    def is_whole(self) -> Member:
        """Wait until one leads and the others stream from it, in synchronous mode one of them synchronously."""

        def whole() -> Member | None:
            leader = self.leader()
            if leader is None:
                return None
            told = _get(leader._rest_port, "/cluster") or {"members": []}
            standbys = [each for each in told["members"] if each["role"] != "leader"]
            if len(standbys) != 2 or any(each["state"] not in ("streaming", "running") for each in standbys):
                return None
            if self._synchronous and not any(each["role"] == "sync_standby" for each in standbys):
                return None
            return leader

        found: Member = until("a whole cluster", whole, FAILS_OVER_WITHIN_S, every_s=0.2)
        return found

    def switch_over(self) -> None:
        """Switch over from the primary to a standby."""
        done = subprocess.run(
            ["patronictl", "-c", str(self.members[0].file), "switchover", "--force"],
            capture_output=True,
            text=True,
            timeout=FAILS_OVER_WITHIN_S,
        )
        assert "Successfully switched over" in done.stdout, done.stdout + done.stderr

    def end(self) -> None:
        """Stop the whole cluster."""
        for member in self.members:
            member.end()
        self._etcd.kill()
        self._etcd.wait()


@contextmanager
def cluster(*, synchronous: bool) -> Iterator[Cluster]:
    """A cluster in a temporary folder."""
    folder = Path(tempfile.mkdtemp(prefix="ledgerline-patroni-"))
    if os.geteuid() == 0:
        shutil.chown(folder, "postgres", "postgres")
    made = Cluster(folder, synchronous=synchronous)
    try:
        yield made
    finally:
        made.end()
        shutil.rmtree(folder, ignore_errors=True)


def _addresses(port: int) -> dict[str, str]:
    return {"listen": f"127.0.0.1:{port}", "connect_address": f"127.0.0.1:{port}"}


def _as_postgres(command: list[str], folder: Path, log: Any) -> subprocess.Popen[bytes]:
    found = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
    return subprocess.Popen(
        command,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LANG": "C.UTF-8"},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        user=None if found is None else found.pw_uid,
        group=None if found is None else found.pw_gid,
        extra_groups=None if found is None else [],
    )


def _get(port: int, path: str) -> Any:
    """The body of a 200 answer of Patroni's, else None."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=2) as answer:
            return json.loads(answer.read() or b"{}")
    except (urllib.error.URLError, OSError, ValueError):
        return None
