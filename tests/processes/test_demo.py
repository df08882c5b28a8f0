"""`make demo` leaves no process or folder behind, however it ends."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.chain.harness import ROOT, until
from tests.ports import free_port
from tests.processes.process_list import words_of

DEMO = (sys.executable, "-m", "devnet.demo", "--blocks", "300")


class Demo:
    """A demo with its own DATA_DIR, and its output."""

    def __init__(self, data_dir: Path, log: Path, *command: str) -> None:
        self._log = log
        outside = {name: os.environ[name] for name in ("PATH", "HOME", "LANG", "TMPDIR") if name in os.environ}
        with log.open("wb") as output:
            self.popen = subprocess.Popen(
                command or DEMO,
                cwd=ROOT,
                env={**outside, "DATA_DIR": str(data_dir), "API_PORT": str(free_port())},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def output(self) -> str:
        return self._log.read_text()

    def says(self, *words: str) -> str:
        """Wait until it has printed all these words; returns its output."""

        def said() -> str | None:
            output = self.output()
            if all(word in output for word in words):
                return output
            assert self.popen.poll() is None, output
            return None

        found: str = until(f"the words {words}", said)
        return found


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """The DATA_DIR of the demos of a test; processes that still use it at the end are killed."""
    tmp_path.chmod(0o755)
    yield tmp_path / "data"
    for process in processes_of(tmp_path / "data"):
        process.kill()


def indexer_of(data_dir: Path) -> psutil.Process:
    """The indexer of the demo, as soon as it runs."""
    found: list[psutil.Process] = until(
        "the indexer", lambda: [each for each in processes_of(data_dir) if words_of(each)[2:3] == ["indexer"]]
    )
    return found[0]


def asks_for_the_index(log: Path) -> bool:
    return re.search(r"/v1/(status|tx/history)", log.read_text()) is not None


def usage(script: str) -> dict[str, Any] | None:
    """The usage of the demo's only account, once it has any."""
    command = f'. {script} && admin "users/usage/summary"'
    answer = subprocess.run(["sh", "-c", command], cwd=ROOT, capture_output=True, text=True, check=True)
    (account,) = json.loads(answer.stdout)["data"]
    found: dict[str, Any] = account
    return found if found["total_requests"] else None


def processes_of(data_dir: Path) -> list[psutil.Process]:
    """The processes that name the folder in their command line or environment."""
    found = []
    for process in psutil.process_iter():
        try:
            words = [*words_of(process), *process.environ().values()]
        except psutil.Error:
            continue
        if any(str(data_dir) in word for word in words) and process.pid != os.getpid():
            found.append(process)
    return found


def test_the_lines_work_a_killed_demo_leaves_nothing_behind_and_an_ended_part_is_named(
    data_dir: Path, tmp_path: Path
) -> None:
    demo = Demo(data_dir, tmp_path / "killed.out")
    indexer = indexer_of(data_dir)
    indexer.suspend()  # long enough for the demo to ask for an index that is not there
    until("a question about the index", lambda: any(map(asks_for_the_index, data_dir.glob("demo-*/API.out"))))
    indexer.resume()
    output = demo.says("New blocks")
    lines = output.splitlines()
    assert len(lines) <= 21, output  # three lines of blocks follow, on a screen of 24
    assert max(len(line.replace(str(data_dir), ".data")) for line in lines) <= 80, output
    (script,) = re.findall(r"^  \. (\S+)$", output, flags=re.MULTILINE)
    tried = re.findall(r'^  ((?:ask|admin) "[^"]+")', output, flags=re.MULTILINE)
    for command in tried:
        answer = subprocess.run(["sh", "-c", f". {script} && {command}"], cwd=ROOT, capture_output=True, text=True)
        assert '"success": true' in answer.stdout, (command, answer)
    assert len(tried) == 5
    used = until("usage", lambda: usage(script))
    assert used["failed_requests"] == 0, used
    paid = subprocess.run(["sh", "-c", f". {script} && pay"], cwd=ROOT, capture_output=True, text=True)
    assert "submitted " in paid.stdout and "confirmations: 1" in paid.stdout, paid
    demo.popen.kill()
    demo.popen.wait()
    until("the end of all processes", lambda: not processes_of(data_dir))
    (left,) = data_dir.glob("demo-*")

    demo = Demo(data_dir, tmp_path / "next.out")
    demo.says(f"Removed {left.name}", "servers ")
    indexer_of(data_dir).kill()
    assert demo.popen.wait(60) == 1
    assert "The indexer was killed by SIGKILL" in demo.output()
    assert list(data_dir.glob("demo-*")) == []
    until("the end of all processes", lambda: not processes_of(data_dir))


def test_a_demo_ends_after_its_make_was_killed(data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(f"demo:\n\t@{' '.join(DEMO)}\n")
    demo = Demo(data_dir, tmp_path / "demo.out", "make", "-f", str(tmp_path / "Makefile"))
    demo.says("Press Ctrl-C to stop")
    demo.popen.kill()
    demo.popen.wait()
    until("the end of all processes", lambda: not processes_of(data_dir))
    assert list(data_dir.glob("demo-*")) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of its parent's end")
def test_a_part_of_the_demo_ends_with_a_killed_demo_and_its_killed_watcher() -> None:
    endless = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
    command = [sys.executable, "-m", "devnet.demo_process", sys.executable, "-c", endless]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as watcher:
        assert watcher.stdout is not None
        part = psutil.Process(int(watcher.stdout.readline()))
        watcher.kill()
        part.wait(10)


def test_an_unusable_folder_is_reported_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    demo = Demo(tmp_path / "file" / "data", tmp_path / "demo.out")
    assert demo.popen.wait(60) == 2
    assert re.fullmatch(r"DATA_DIR is .*, expected a folder, existing or not\n", demo.output())
