"""The operator's list of pools: a text file with a pool id per line, in bech32 or hex. `#` begins a comment."""

from pathlib import Path

from shared.ledger import parse_pool_id

MAX_BYTES = 1024 * 1024


class Unusable(ValueError):
    """The file is not such a list, and why."""


def read(path: Path) -> set[bytes]:
    """The pools of a list. Raises OSError or Unusable."""
    with path.open("rb") as file:
        text = file.read(MAX_BYTES + 1)
    if len(text) > MAX_BYTES:
        raise Unusable(f"it has more than {MAX_BYTES:,} bytes")
    pools = set()
    for number, line in enumerate(text.decode(errors="replace").splitlines(), 1):
        entry = line.partition("#")[0].strip()
        try:
            if entry:
                pools.add(parse_pool_id(entry))
        except ValueError:
            raise Unusable(f"line {number} is not a pool id") from None
    return pools
