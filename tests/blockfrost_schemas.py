"""Blockfrost's document as facts (tests/vectors/blockfrost-openapi.json), and whether an answer keeps to it.

A member of an answer is named by its place, such as `inputs[].address`. An answer has only members that the document
names: Blockfrost's server leaves others out.
"""

import json
import re
from collections.abc import Collection, Iterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import jsonschema
from jsonschema import Draft202012Validator, FormatChecker

Json = dict[str, Any]

DOCUMENT: Json = json.loads((Path(__file__).parent / "vectors" / "blockfrost-openapi.json").read_text())

NOT_KEPT: dict[str, tuple[str, ...]] = {}
"""By path, the members that are always null although the document allows no null: what they need is not kept yet.

NOTE: this table only shrinks. A member with a value fails the check until it is removed from here.
"""

UNKNOWN: dict[str, dict[str, tuple[str, ...]]] = {
    "earlier blocks": {
        "/network": ("supply.locked",),
        "/txs/{}/redeemers": ("[].script_hash",),
        "/txs/{}": ("deposit", "fees"),
        "/txs/{}/utxos": ("inputs[].address", "inputs[].amount"),
        "/txs/{}/pool_updates": ("[].active_epoch",),
        "/accounts/{}": ("registered", "rewards_sum", "withdrawals_sum", "reserves_sum", "treasury_sum"),
        "/assets/{}": ("initial_mint_tx_hash",),
    },
    "transactions as CBOR": {"/txs/{}": ("size", "mir_cert_count")},
}
"""By what a chain lacks, and by path, the members that may then be null."""


NARROWER: dict[str, tuple[str, ...]] = {
    "/txs/{}/metadata": ("[].json_metadata",),
    "/metadata/txs/labels/{}": ("[].json_metadata",),
}
"""By path, the members for which the document allows less than Blockfrost's server sends: metadata that is a number or
a list, not only a text or an object.
"""


def plain(path: str) -> str:
    """A path without the names of its parameters, which differ."""
    return re.sub(r"\{\w+\}", "{}", path)


ANSWERS: dict[tuple[str, str], Json] = {
    (method, plain(path)): said["answer"]
    for path, methods in DOCUMENT["paths"].items()
    for method, said in methods.items()
    if "answer" in said
}


def check(path: str, answer: Any, lacking: Collection[str] = (), method: str = "GET") -> None:
    """Check an answer with status 200. `path` is a template; `lacking` names what the chain lacks, as in UNKNOWN."""
    path = plain(path)
    wrong = {_shown(error) for error in _validator(method, path).iter_errors(answer)}
    never, sometimes = NOT_KEPT.get(path, ()), [UNKNOWN[what].get(path, ()) for what in lacking]
    wrong -= {(place, "null") for place in chain(never, *sometimes)}
    wrong = {(place, what) for place, what in wrong if place not in NARROWER.get(path, ()) or what == "null"}
    assert not wrong, (path, sorted(wrong))
    for place in never:
        known = [value for value in _values(answer, place.split(".")) if value is not None]
        assert not known, f"{path}: {place} is {known[0]}, so it no longer belongs in NOT_KEPT"


def _shown(error: jsonschema.ValidationError) -> tuple[str, str]:
    """The place of an error, and what is wrong there."""
    place = "".join("[]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    is_null = error.validator == "type" and error.instance is None
    return place, "null" if is_null else error.message[:200]


def _values(answer: Any, place: list[str]) -> Iterator[Any]:
    """The values at a place."""
    if isinstance(answer, list):
        for each in answer:
            yield from _values(each, [part for part in place if part != "[]"])
    elif place:
        yield from _values(answer[place[0].removesuffix("[]")], place[1:])
    else:
        yield answer


@cache
def _validator(method: str, path: str) -> Draft202012Validator:
    schema = {"schemas": _closed(DOCUMENT["schemas"]), **_closed(ANSWERS[method, path])}
    return Draft202012Validator(schema, format_checker=_formats)


def _closed(said: Any) -> Any:
    """A schema whose objects have only the members that it names."""
    if isinstance(said, list):
        return [_closed(each) for each in said]
    if not isinstance(said, dict):
        return said
    shown = {name: _closed(part) for name, part in said.items()}
    if isinstance(said.get("properties"), dict) and "additionalProperties" not in said:
        shown["additionalProperties"] = False
    return shown


_UNIT = re.compile("[0-9a-f]{56}([0-9a-f]{2}){0,32}")
_ASSET = "asset policy_id and hex-encoded asset_name"


def _is_unit(value: object) -> bool:
    return isinstance(value, str) and _UNIT.fullmatch(value) is not None


def _is_any_unit(value: object) -> bool:
    return value == "lovelace" or _is_unit(value)


def _is_hex(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch("([0-9a-f]{2})*", value) is not None


_formats = FormatChecker(formats=())
_formats.checks("hex")(_is_hex)
_formats.checks(f"Lovelace or concatenation of {_ASSET}")(_is_any_unit)
_formats.checks(f"Concatenation of {_ASSET}")(_is_unit)
_formats.checks("Concatenation of the policy_id and hex-encoded asset_name")(_is_unit)
