"""Machines that share one spool folder by mistake are reported."""

import http.client
import json
import os
import time
from pathlib import Path

from tests.chain.harness import until
from tests.patience import PATIENCE_S
from tests.processes.api_process import get, running


def test_a_folder_of_spools_of_another_machine_is_reported(environment: dict[str, str], tmp_path: Path) -> None:
    folder = tmp_path / "data" / "usage"
    folder.mkdir(parents=True)
    stranger, old, gone = (folder / f"{name}.host" for name in ("8a1c0e52-other", "0d8af1aa-old", "5c3b77d0-gone"))
    stranger.write_text("barn")
    old.write_text("shed")
    os.utime(old, (time.time() - 3_600,) * 2)
    gone.write_text("mill")
    os.utime(gone, (time.time() - 90_000,) * 2)
    with running({**environment, "DATA_DIR": str(tmp_path / "data")}, tmp_path) as (api, port):
        until("an answer", lambda: get(port) == 200)
        api.says("usage.folder_shared", "barn")
        assert "shed" not in api.output()
        assert old.exists() and not gone.exists(), "a file is forgotten after a day"
        assert "DATA_DIR is shared with another host" in reasons(port)
        assert "barn" not in reasons(port), "/ready is open to anyone"
        stranger.unlink()
        until("it is gone", lambda: "DATA_DIR" not in reasons(port))


def test_processes_of_one_machine_share_a_folder_of_spools(environment: dict[str, str], tmp_path: Path) -> None:
    settings = {**environment, "DATA_DIR": str(tmp_path / "data")}
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    with running(settings, tmp_path / "one") as (_, port), running(settings, tmp_path / "other") as (_, second):
        until("both answer", lambda: get(port) == get(second) == 200)
        until("the machine's file", lambda: len(list((tmp_path / "data" / "usage").glob("*.host"))) == 1)
        assert "DATA_DIR" not in reasons(port) + reasons(second)


def reasons(port: int) -> str:
    """The reasons of /ready."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    connection.request("GET", "/ready")
    answer = json.loads(connection.getresponse().read())
    connection.close()
    return str(answer.get("error", answer))
