"""Values as lists of units and quantities. A unit is `lovelace`, or the policy id and the name of an asset in hex."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from api.chain.transactions import Value

LOVELACE = "lovelace"


class Amount(msgspec.Struct, frozen=True):
    """A quantity, as text, of ada or of an asset."""

    unit: str
    quantity: str


def from_value(value: Value) -> list[Amount]:
    """The value of an output."""
    return shown(_quantities(value))


def total(values: Iterable[Value]) -> list[Amount]:
    """The sum of several values."""
    sums: Counter[str] = Counter({LOVELACE: 0})
    for value in values:
        sums.update(_quantities(value))
    return shown(sums)


def shown(quantities: Mapping[str, int]) -> list[Amount]:
    """Quantities by unit: lovelace, then assets in the order of their units."""
    units = sorted(quantities, key=lambda unit: (unit != LOVELACE, unit))
    return [Amount(unit, str(quantities[unit])) for unit in units]


def unit_of(policy_id: str, asset_name: str) -> str:
    """The unit of an asset, both parts in hex."""
    return policy_id + asset_name


def _quantities(value: Value) -> dict[str, int]:
    assets = {} if value.assets is msgspec.UNSET else value.assets
    held = {name.replace(".", "", 1): quantity for name, quantity in assets.items() if isinstance(quantity, int)}
    return {LOVELACE: value.lovelace, **held}
