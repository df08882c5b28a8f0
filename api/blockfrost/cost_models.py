"""Cost models with the names of their parameters, which no node reports.

`cost_models.json` has the names by language, in the ledger's order: the constructors of `ParamName` in
`plutus-ledger-api` of https://github.com/IntersectMBO/plutus at f424a79, as `showParamName` writes them. A cost model
is a prefix of its list, since hard forks only append parameters.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

_NAMES = msgspec.json.decode(Path(__file__).with_suffix(".json").read_bytes(), type=dict[str, list[str]])


def named(language: str, costs: Sequence[int]) -> dict[str, int]:
    """A cost model of a language such as `PlutusV3` by name, in the ledger's order.

    A parameter that is newer than the list is named by its position. NOTE: the name must not be a number, since
    JavaScript sorts numeric keys before others.
    """
    names = _NAMES.get(language, [])
    return {names[at] if at < len(names) else f"parameter-{at:03}": cost for at, cost in enumerate(costs)}
