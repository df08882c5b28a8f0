"""Files of others that the service serves."""

import hashlib
from pathlib import Path

import pytest

STATIC = Path(__file__).parents[2] / "api" / "static"


@pytest.mark.parametrize("library", ["preact", "htm", "uplot", "pico"])
def test_the_vendored_files_are_the_published_ones(library: str) -> None:
    folder = STATIC / library
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    listed = {name: checksum for checksum, name in (line.split() for line in lines)}
    assert listed.keys() == {file.name for file in folder.iterdir()} - {"SHA256SUMS"}
    for name, checksum in listed.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == checksum, name
