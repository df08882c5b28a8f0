"""The subjects of subscriptions: what can be watched, as bodies name it, and as the key by which a block looks it up.

A key is a letter for the kind of event, a letter for the kind of subject, and the subject's bytes. Kinds of the
caller's own have the id of the caller in their place.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from api import errors
from api.answers import Digits
from api.chain import owners, payment_credentials, representatives
from api.chain.assets import AssetKind, Fingerprint
from api.chain.labels import LabelKind
from api.chain.pools import PoolIdKind, show_pool_id
from api.parameters import Hex, JsonSchema, Kind
from shared import address
from shared.ledger import HASH28_BYTES
from shared.network import Network

EventKind = Literal[
    "transaction",
    "mint",
    "delegation",
    "withdrawal",
    "pool",
    "metadata",
    "epoch",
    "block",
    "governance",
    "submitted",
    "key.expiring",
    "quota.80",
    "quota.100",
    "delivery.failing",
    "chain_split",
]
Direction = Literal["in", "out", "both"]
SubjectName = Literal[
    "address", "stake_address", "payment_credential", "asset", "policy_id", "pool_id", "label", "drep_id"
]

KIND_LETTERS: dict[EventKind, bytes] = {
    "transaction": b"t",
    "mint": b"m",
    "delegation": b"d",
    "withdrawal": b"w",
    "pool": b"p",
    "metadata": b"l",
    "epoch": b"e",
    "block": b"b",
    "governance": b"g",
    "submitted": b"s",
    "key.expiring": b"k",
    "quota.80": b"8",
    "quota.100": b"9",
    "delivery.failing": b"h",
    "chain_split": b"f",
}
_KIND_OF = {letter: kind for kind, letter in KIND_LETTERS.items()}

SUBJECT_LETTERS: dict[SubjectName, bytes] = {
    "address": b"a",
    "stake_address": b"s",
    "payment_credential": b"c",
    "asset": b"t",
    "policy_id": b"p",
    "pool_id": b"o",
    "label": b"l",
    "drep_id": b"d",
}
_NAME_OF = {letter: name for name, letter in SUBJECT_LETTERS.items()}
NO_SUBJECT = b"-"
_OWNER = b"="
NOTICE = b"!"
"""Precedes the key of an event that tells of what is in no block."""

RESET = b"r" + NO_SUBJECT
"""The key of an event that no subscription asks for: blocks from before the beginning of its log were undone."""

SUBJECTS_OF: dict[EventKind, tuple[SubjectName, ...]] = {
    "transaction": ("address", "stake_address", "payment_credential", "asset", "policy_id"),
    "mint": ("asset", "policy_id"),
    "delegation": ("stake_address", "pool_id"),
    "withdrawal": ("stake_address",),
    "pool": ("pool_id",),
    "metadata": ("label",),
    "epoch": (),
    "block": (),
    "governance": ("stake_address", "drep_id"),
    "submitted": (),
    "key.expiring": (),
    "quota.80": (),
    "quota.100": (),
    "delivery.failing": (),
    "chain_split": (),
}
"""The kinds of subjects that each kind of event has; those without one tell of everything, or of the caller's own."""

Owner = Literal["credential", "account"]
OWNERS: dict[EventKind, Owner] = {
    "submitted": "account",
    "key.expiring": "credential",
    "quota.80": "credential",
    "quota.100": "credential",
    "delivery.failing": "credential",
}
"""The kinds of events that tell of the caller's own, and whose it is. Their keys have an id in place of a subject."""

WITH_QUANTITY: tuple[EventKind, ...] = ("transaction", "mint", "withdrawal")
"""The kinds of events that have a quantity: only they can be restricted to a direction and a least quantity."""

MAX_AT_ONCE = 5_000
"""How many subjects one request adds or removes. A body has at most 1 MiB."""

MAX_KEY_BYTES = 1_024
_IN_ONE_GO = 200  # so many subjects are parsed before other requests go on
_LABEL_BYTES = 8
_MAX_DIGITS = 30


class SentSubject(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """An event to be told of, as a body has it: its kind, and one subject, unless the kind has none.

    `direction` is what the subject does in a transaction: it receives (`in`), it spends (`out`), or either. A mint is
    `in`, a burning and a withdrawal are `out`. Quantities below `least_quantity` are left out: lovelace of an address,
    an account or a payment credential, otherwise units of the asset, or of all assets of the policy.
    """

    kind: EventKind
    address: str | None = None
    stake_address: str | None = None
    payment_credential: str | None = None
    asset: str | None = None
    policy_id: str | None = None
    pool_id: str | None = None
    label: str | None = None
    drep_id: str | None = None
    direction: Direction = "both"
    least_quantity: Digits = "0"


class Subject(msgspec.Struct, frozen=True):
    """A subject by its key."""

    key: bytes
    direction: Direction
    least: Decimal


class Subjects(Kind[tuple[SentSubject, ...]]):
    """A JSON array of 1 to MAX_AT_ONCE subjects."""

    def __init__(self) -> None:
        fields: JsonSchema = {name: {"type": "string"} for name in SUBJECT_LETTERS}
        item: JsonSchema = {
            "type": "object",
            "required": ["kind"],
            "additionalProperties": False,
            "properties": {
                "kind": {"type": "string", "enum": list(KIND_LETTERS)},
                **fields,
                "direction": {"type": "string", "enum": ["in", "out", "both"]},
                "least_quantity": {"type": "string", "pattern": f"^[0-9]{{1,{_MAX_DIGITS}}}$"},
            },
        }
        schema: JsonSchema = {"type": "array", "items": item, "minItems": 1, "maxItems": MAX_AT_ONCE}
        super().__init__(f"an array of 1 to {MAX_AT_ONCE} subjects", schema)

    def of_json(self, value: object) -> tuple[SentSubject, ...]:
        if not isinstance(value, list) or not 1 <= len(value) <= MAX_AT_ONCE:
            raise ValueError(value)
        return tuple(_read(at, item) for at, item in enumerate(value))


async def parse_all(sent: Sequence[SentSubject], network: Network) -> dict[bytes, Subject]:
    """Subjects by key; of the same twice, the last. Raises Refusal, which says which one is wrong."""
    by_key = dict[bytes, Subject]()
    for at, each in enumerate(sent, 1):
        subject = _parse(at - 1, each, network)
        by_key[subject.key] = subject
        if not at % _IN_ONE_GO:
            await asyncio.sleep(0)
    return by_key


def owned(given: Mapping[bytes, Subject], ids: Mapping[Owner, UUID]) -> dict[bytes, Subject]:
    """The same subjects, those of the caller's own with the ids of the caller."""
    return {subject.key: subject for each in given.values() for subject in (_owned(each, ids),)}


def _owned(subject: Subject, ids: Mapping[Owner, UUID]) -> Subject:
    kind = kind_of(subject.key)
    owner = OWNERS.get(kind)
    return subject if owner is None else msgspec.structs.replace(subject, key=notice_key(kind, ids[owner]))


def kind_of(key: bytes) -> EventKind:
    """The kind of event of a key."""
    return _KIND_OF[key[:1]]


def show(key: bytes) -> dict[str, str] | None:
    """The subject in a key as events name it; None for a kind that has none."""
    if key[1:2] in (NO_SUBJECT, _OWNER):
        return None
    name = _NAME_OF[key[1:2]]
    return {name: _SHOWN[name](key[2:])}


def key_of(kind: EventKind, name: SubjectName | None = None, value: bytes = b"") -> bytes:
    """The key of a kind of event and a subject."""
    return KIND_LETTERS[kind] + (NO_SUBJECT if name is None else SUBJECT_LETTERS[name] + value)


def notice_key(kind: EventKind, owner: UUID | None) -> bytes:
    """The key of a kind of event that has no subject, of an owner or, with None, of all."""
    return key_of(kind) if owner is None else own_prefix(kind) + owner.bytes


def own_prefix(kind: EventKind) -> bytes:
    """What precedes the id in the key of a kind of the caller's own."""
    return KIND_LETTERS[kind] + _OWNER


def label_bytes(label: int) -> bytes:
    """The bytes of a metadata label in a key."""
    return label.to_bytes(_LABEL_BYTES)


def _read(at: int, item: object) -> SentSubject:
    try:
        sent = msgspec.convert(item, SentSubject)
    except msgspec.ValidationError as wrong:
        raise errors.invalid_parameter(f"{_place(at)}: {wrong}") from wrong
    least = sent.least_quantity
    if not (least.isascii() and least.isdigit() and len(least) <= _MAX_DIGITS):
        raise errors.invalid_parameter(f"{_place(at)}: least_quantity must be a number in digits")
    return sent


def _parse(at: int, sent: SentSubject, network: Network) -> Subject:
    possible = SUBJECTS_OF[sent.kind]
    given = {name: text for name in SUBJECT_LETTERS if (text := getattr(sent, name)) is not None}
    if len(given) != min(len(possible), 1) or not given.keys() <= set(possible):
        expected = f"one of {', '.join(possible)}" if possible else "no subject"
        raise errors.invalid_parameter(f"{_place(at)}: a subject of the kind {sent.kind} must have {expected}")
    if sent.kind not in WITH_QUANTITY and (sent.direction != "both" or Decimal(sent.least_quantity)):
        raise errors.invalid_parameter(f"{_place(at)}: the kind {sent.kind} has neither direction nor quantity")
    key = key_of(sent.kind)
    for name, text in given.items():
        try:
            key = key_of(sent.kind, name, _PARSED[name](text, network))
        except errors.Refusal as wrong:
            raise wrong.about(_place(at)) from wrong
    if len(key) > MAX_KEY_BYTES:
        raise errors.invalid_parameter(f"{_place(at)}: an address of more than 1,000 bytes can't be watched")
    return Subject(key, sent.direction, Decimal(sent.least_quantity))


def _place(at: int) -> str:
    return f"subjects[{at}]"


def _by_kind(kind: Kind[bytes]) -> Callable[[str, Network], bytes]:
    def parse(text: str, _: Network) -> bytes:
        try:
            return kind.of_text(text)
        except ValueError as wrong:
            raise kind.refusal("it") from wrong

    return parse


def _asset(text: str, _: Network) -> bytes:
    kind = AssetKind()
    try:
        asset = kind.of_text(text)
    except ValueError as wrong:
        raise kind.refusal("asset") from wrong
    if isinstance(asset, Fingerprint):
        raise errors.invalid_asset()  # only the index knows what it stands for
    return asset.policy_id + asset.asset_name


def _label(text: str, _: Network) -> bytes:
    kind = LabelKind()
    try:
        return label_bytes(kind.of_text(text))
    except ValueError as wrong:
        raise kind.refusal("label") from wrong


def _drep_id(text: str, _: Network) -> bytes:
    try:
        return representatives.parse(text)
    except ValueError as wrong:
        raise errors.invalid_parameter("drep_id must be the id of a delegate representative, drep1…") from wrong


_PARSED: Mapping[SubjectName, Callable[[str, Network], bytes]] = {
    "address": owners.parse_address,
    "stake_address": owners.parse_stake,
    "payment_credential": lambda text, _: payment_credentials.parse(text),
    "asset": _asset,
    "policy_id": _by_kind(Hex(HASH28_BYTES, message=errors.invalid_policy_id)),
    "pool_id": _by_kind(PoolIdKind()),
    "label": _label,
    "drep_id": _drep_id,
}
_SHOWN: Mapping[SubjectName, Callable[[bytes], str]] = {
    "address": address.show,
    "stake_address": address.show_stake,
    "payment_credential": lambda digest: address.show_payment_credential(digest, ""),
    "asset": lambda asset: f"{asset[:HASH28_BYTES].hex()}.{asset[HASH28_BYTES:].hex()}",
    "policy_id": bytes.hex,
    "pool_id": show_pool_id,
    "drep_id": representatives.show,
    "label": lambda label: str(int.from_bytes(label)),
}

SentSubjects = Annotated[tuple[SentSubject, ...], Subjects()]
