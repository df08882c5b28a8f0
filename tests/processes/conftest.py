"""Indexers of preview's first blocks."""

from collections.abc import Callable, Iterator
from itertools import islice

import pytest

from tests.chain.fixtures import ledgerline, new_ledgerline
from tests.chain.harness import Json, Ledgerline, Process, blocks_of, recorded
from tests.processes.preview import FILE

__all__ = ["blocks", "indexer", "ledgerline", "new_ledgerline"]


@pytest.fixture(scope="session")
def blocks() -> list[Json]:
    """The first blocks of preview."""
    return list(islice(blocks_of(recorded(FILE)), 200))


@pytest.fixture
def indexer(ledgerline: Ledgerline) -> Iterator[Callable[[str], Process]]:
    """Starts an indexer of preview at an address of Ogmios; all are ended after the test."""
    started: list[Process] = []

    def start(ogmios_url: str) -> Process:
        started.append(ledgerline.start_indexer("preview", ogmios_url))
        return started[-1]

    yield start
    for process in started:
        process.kill()
