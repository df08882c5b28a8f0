"""An asset in a path: policy id and asset name in hex, without a dot; or `lovelace`."""

import re
from typing import Literal

from api import errors
from api.blockfrost.amounts import LOVELACE
from api.chain.assets import AssetId
from api.parameters import JsonSchema, Kind

_UNIT = re.compile(r"([0-9a-fA-F]{56})((?:[0-9a-fA-F]{2}){0,32})")


class UnitKind(Kind[AssetId]):
    """Policy id and asset name in hex, in upper or lower case."""

    def __init__(self) -> None:
        schema: JsonSchema = {"type": "string", "pattern": f"^{_UNIT.pattern}$"}
        super().__init__("the policy id and the name of an asset in hex digits", schema, errors.invalid_asset)

    def of_text(self, text: str) -> AssetId:
        match = _UNIT.fullmatch(text)
        if match is None:
            raise ValueError(text)
        policy_id, asset_name = map(bytes.fromhex, match.groups())
        return AssetId(policy_id, asset_name)


class UnitOrLovelaceKind(Kind[AssetId | Literal["lovelace"]]):
    """The same, or `lovelace` for outputs that hold no asset."""

    def __init__(self) -> None:
        schema: JsonSchema = {"type": "string", "pattern": f"^({LOVELACE}|{_UNIT.pattern})$"}
        expected = f"{LOVELACE}, or the policy id and the name of an asset in hex digits"
        super().__init__(expected, schema, errors.invalid_asset)

    def of_text(self, text: str) -> AssetId | Literal["lovelace"]:
        return "lovelace" if text == LOVELACE else UnitKind().of_text(text)
