"""An asset in a path: policy id and asset name in hex, without a dot."""

import re

from api import errors
from api.chain.assets import AssetId
from api.parameters import JsonSchema, Kind

_UNIT = re.compile(r"([0-9a-fA-F]{56})((?:[0-9a-fA-F]{2}){0,32})")


class UnitKind(Kind[AssetId]):
    """Policy id and asset name in hex, in upper or lower case."""

    def __init__(self) -> None:
        schema: JsonSchema = {"type": "string", "pattern": f"^{_UNIT.pattern}$"}
        super().__init__("the policy id and the name of an asset in hex digits", schema, errors.invalid_asset)

    def of_text(self, text: str) -> AssetId:
        found = _UNIT.fullmatch(text)
        if found is None:
            raise ValueError(text)
        return AssetId(bytes.fromhex(found[1]), bytes.fromhex(found[2]))
