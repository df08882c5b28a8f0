"""Where a test belongs: in `tests/pure` if it needs no server, elsewhere if it does.

A test needs a server if it uses the Postgres or Valkey of the run, or if it starts a program. These programs do not
count: one in the test's own text (`python -c`), those of others that look at files and end, and any that is asked for
its version. Servers in the process of the test, such as a devnet, do not count either.
"""

import subprocess
import sys
from collections import defaultdict
from collections.abc import Generator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

OF_THE_RUN = "session_servers"
CHECKERS = {"docker-compose", "promtool", "ruff", "systemd-analyze"}

_PURE = Path(__file__).with_name("pure")


class Placement:
    """A plugin that fails a test in the wrong place."""

    def __init__(self) -> None:
        self._started: list[str] = []
        # By name and place of a fixture for several tests. The place is a folder, or the file of a module.
        self._started_by: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        sys.addaudithook(self._note)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
        """Keep apart what a fixture starts for several tests."""
        if fixturedef.scope == "function":
            return (yield)
        outside, self._started = self._started, self._started_by[fixturedef.argname, fixturedef.baseid]
        try:
            return (yield)
        finally:
            self._started = outside

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, None, None]:
        """Forget what the test before has started."""
        self._started.clear()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Fail a test that passes in the wrong place."""
        result = yield
        assert isinstance(item, pytest.Function)
        shared = [
            (place, programs)
            for (name, place), programs in self._started_by.items()
            if name in item.fixturenames and item.nodeid.startswith(place)
        ]
        needed = [*self._started, *chain.from_iterable(programs for _, programs in shared)]
        if OF_THE_RUN in item.fixturenames:
            needed.append(OF_THE_RUN)
        if _PURE in item.path.parents:
            assert not needed, f"it needs a server, so it does not belong in tests/pure: {needed}"
        else:
            # A fixture that a module makes once would be made twice if its tests were in two places.
            is_made_once = any(place.endswith(".py") for place, _ in shared)
            assert needed or is_made_once, "it needs no server, so it belongs in tests/pure"
        return result

    def _note(self, event: str, args: tuple[Any, ...]) -> None:
        """Called at every audited event of this process."""
        if event == "subprocess.Popen":
            words = list(map(str, [args[1]] if isinstance(args[1], str | bytes | Path) else args[1]))
            if _may_serve(words):
                self._started.append(subprocess.list2cmdline(words))


def _may_serve(command: list[str]) -> bool:
    program, *arguments = command
    name = Path(program).name
    if name.startswith("python"):
        if arguments[:1] == ["-c"]:
            return False
        if arguments[:1] == ["-m"]:
            _, name, *arguments = arguments
    return name not in CHECKERS and arguments != ["--version"]
