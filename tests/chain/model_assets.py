"""The answers that the API must give about native assets; see model.py."""

from collections import defaultdict
from typing import Any

import cbor2

from tests.chain.model import Json, Ledger, Output, Transaction, fingerprint, stake_address_of

AssetKey = tuple[str, str]

# CIP-67 labels with their checksums, as the first four bytes of an asset name in hex (CIP-68)
REFERENCE = "000643b0"
USER_TOKENS = ("000de140", "0014df10", "001bc280")

FIRST_MINT = {"tx": "tx_hash", "slot": "slot_no", "time": "block_time"}


class Assets:
    """Mints and movements of every asset; holdings are summed from the unspent outputs on each query."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.minted: dict[AssetKey, list[tuple[Transaction, int]]] = defaultdict(list)
        self.moved: dict[AssetKey, list[tuple[Transaction, int]]] = defaultdict(list)
        self.cip25: dict[AssetKey, Json] = {}
        self.datums: dict[str, str] = {}

    def forward(self, transactions: list[Transaction]) -> None:
        for tx in transactions:
            self.datums.update(tx.datums)
            for asset, quantity in tx.mint.items():
                self.minted[asset].append((tx, quantity))
                described = cip25_entry(tx.metadata.get("721"), *asset)
                if quantity > 0 and described is not None:
                    self.cip25[asset] = described
            paid: dict[AssetKey, int] = defaultdict(int)
            for _, output in tx.outputs:
                for asset, quantity in output.assets.items():
                    paid[asset] += quantity
            for asset, quantity in paid.items():
                self.moved[asset].append((tx, quantity))

    @property
    def known(self) -> list[AssetKey]:
        """Every asset that was minted, burned or paid. All are minted first in a chain from the origin."""
        return list(dict.fromkeys([*self.moved, *self.minted]))

    def supply(self, asset: AssetKey) -> int:
        return sum(quantity for _, quantity in self.minted.get(asset, ()))

    def listed(self, asset: AssetKey) -> Json:
        """One row of GET /v1/assets/policy/:policyId."""
        quantities = [quantity for _, quantity in self.minted.get(asset, ())]
        return {
            "asset_name": asset[1],
            "asset_name_ascii": text_of(bytes.fromhex(asset[1])),
            "fingerprint": fingerprint(*asset),
            "total_supply": str(sum(quantities)),
            "mint_count": sum(quantity > 0 for quantity in quantities),
            "burn_count": sum(quantity < 0 for quantity in quantities),
        }

    def info(self, asset: AssetKey) -> Json:
        """GET /v1/assets/:asset, without its metadata."""
        first = next((self.ledger.entry(tx) for tx, quantity in self.minted.get(asset, ()) if quantity > 0), None)
        return (
            {"policy_id": asset[0]}
            | self.listed(asset)
            | {f"first_mint_{column}": first and first[key] for column, key in FIRST_MINT.items()}
        )

    def of_policy(self, policy: str) -> list[AssetKey]:
        return [asset for asset in self.known if asset[0] == policy]

    def mints(self, asset: AssetKey) -> list[Json]:
        """All rows of GET /v1/assets/:asset/mints, oldest first."""
        rows = [self.ledger.entry(tx) | {"quantity": str(quantity)} for tx, quantity in self.minted.get(asset, ())]
        return [{key: row[key] for key in row if key != "block_hash"} for row in rows]

    def movements(self, asset: AssetKey) -> list[Json]:
        """All rows of GET /v1/assets/:asset/transactions, oldest first."""
        return [self.ledger.entry(tx) | {"quantity": str(quantity)} for tx, quantity in self.moved.get(asset, ())]

    def holdings(self) -> tuple[dict[AssetKey, list[Json]], dict[str, list[Json]]]:
        """The holders of each asset and of each policy, greatest first."""
        by_asset: dict[Any, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        by_policy: dict[Any, dict[str, int]] = defaultdict(lambda: defaultdict(int))
        for output in self.ledger.unspent.values():
            for asset, quantity in output.assets.items():
                by_asset[asset][output.address] += quantity
                by_policy[asset[0]][output.address] += quantity
        return (
            {asset: holder_rows(held) for asset, held in by_asset.items()},
            {policy: holder_rows(held) for policy, held in by_policy.items()},
        )

    def cip68(self, asset: AssetKey) -> Json | None:
        """The metadata in the current datum of the reference token, if it is readable."""
        return cip68_entry(self.reference_datum(asset))

    def reference_datum(self, asset: AssetKey) -> str | None:
        """The current datum of a user token's reference token."""
        policy, name = asset
        if not name.startswith(USER_TOKENS):
            return None
        reference = (policy, REFERENCE + name[8:])
        for output in reversed(self.ledger.unspent.values()):
            if reference in output.assets:
                return self.datum(output)
        return None

    def datum(self, output: Output) -> str | None:
        if output.datum is not None:
            return output.datum
        return self.datums.get(output.datum_hash or "")

    def metadata(self, asset: AssetKey) -> tuple[Json | None, str | None]:
        """The asset's metadata on chain and their source, by `metadata_source=auto` without a registry."""
        on_datum = self.cip68(asset)
        if on_datum is not None:
            return on_datum, "cip68"
        on_label = self.cip25.get(asset)
        return (on_label, "cip25") if on_label is not None else (None, None)


def holder_rows(held: dict[str, int]) -> list[Json]:
    return [
        {"address": address, "stake_address": stake_address_of(address), "quantity": str(quantity)}
        for address, quantity in sorted(held.items(), key=lambda row: -row[1])
    ]


def text_of(value: Any) -> str | None:
    """Text, which may be bytes or an array of pieces."""
    if isinstance(value, list | tuple):
        pieces = [text_of(piece) for piece in value]
        return None if None in pieces else "".join(piece for piece in pieces if piece is not None)
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return None
    return value if isinstance(value, str) else None


def described(entry: dict[Any, Any], fields: tuple[str, ...]) -> Json:
    texts = {name: text_of(entry.get(name)) for name in fields}
    image = texts.get("image") or ""
    texts["image"] = image if image.startswith(("ipfs://", "https://", "ar://", "data:")) else None
    return {name: text for name, text in texts.items() if text is not None}


def cip25_entry(label: Json | None, policy: str, name: str) -> Json | None:
    """The entry of an asset under label 721: policy and name as bytes, text, or hex, in every version."""
    if label is None:
        return None
    body = cbor2.loads(bytes.fromhex(label["cbor"])) if "cbor" in label else label["json"]
    of_policy = by_hex(body, policy, as_text=False)
    entry = by_hex(of_policy, name, as_text=True)
    return described(entry, ("name", "ticker", "description", "image", "url")) if isinstance(entry, dict) else None


def by_hex(entries: Any, wanted: str, as_text: bool) -> Any:
    """The value under a key: as bytes, as UTF-8 text if names may have that form, or as hex."""
    if not isinstance(entries, dict):
        return None
    raw = bytes.fromhex(wanted)
    exact: list[Any] = [raw, *([text_of(raw)] if as_text else [])]
    in_hex = [key for key in entries if isinstance(key, str) and key.lower() == wanted]
    return next((entries[key] for key in exact + in_hex if key is not None and key in entries), None)


def cip68_entry(datum: str | None) -> Json | None:
    """The metadata map of a CIP-68 datum: constructor 0 of [map, version, extra]."""
    if datum is None:
        return None
    body = cbor2.loads(bytes.fromhex(datum))
    fields = body.value if isinstance(body, cbor2.CBORTag) else None
    if not isinstance(fields, list) or not isinstance(fields[0], dict):
        return None
    entry = {text_of(key): value for key, value in fields[0].items()}
    decimals = entry.get("decimals", 0)
    texts = described(entry, ("name", "description", "image", "url"))
    return texts | {"decimals": decimals if isinstance(decimals, int) else 0}
