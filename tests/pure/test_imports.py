"""The large Cardano packages load where they are used, not in every process."""

import subprocess
import sys

import pytest

PROCESSES = ("indexer.__main__", "api.__main__", "api.worker", "shared.servers.supervisor")


@pytest.mark.parametrize("module", PROCESSES)
def test_a_process_starts_without_the_packages_that_it_does_not_need(module: str) -> None:
    script = (
        f"import sys, {module}; print([name for name in ('pycardano', 'ogmios', 'pydantic') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
