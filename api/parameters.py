"""What a caller sent, field by field: its type, its range, and the text of the refusal.

A question (path and query) and a body are frozen Structs whose fields carry a kind: `limit: Annotated[int,
Integer(1, 100)] = 20`. The same kinds read requests and describe them in /openapi.json.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from types import NoneType
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args, get_type_hints
from uuid import UUID

import msgspec
from multidict import MultiMapping

from api import errors

Value = TypeVar("Value")
JsonSchema = dict[str, object]

DEEPEST_JSON = 100
"""How many levels a body may be nested: more is no data, and would exhaust the stack of whoever reads it back."""

HIGHEST_EXACT = 2**53 - 1
"""The largest integer that every JSON reader takes as it is: enough for any offset and slot."""

_DIGITS = re.compile(r"[0-9]{1,19}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-fA-F]*")


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a request's path and query ask. A field named in the path's template is read there, others in the query."""

    def check(self) -> None:
        """Raise a refusal where fields that are each right contradict each other."""


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """What the JSON object of a request says."""

    def check(self) -> None:
        """Raise a refusal where fields that are each right contradict each other."""


class Kind(Generic[Value]):
    """What one field accepts. `of_text` reads paths and queries, `of_json` bodies; both raise ValueError.

    `expected` completes "<name> must be …"; a `message` replaces the whole text of that refusal, and `missing` that of
    a required field that is absent.
    """

    def __init__(
        self, expected: str, schema: Mapping[str, object], message: str | None = None, missing: str | None = None
    ) -> None:
        self.expected, self.schema, self.message, self.missing = expected, dict(schema), message, missing

    def of_text(self, text: str) -> Value:
        """The value of a path or query parameter; kinds that stand in bodies alone have none."""
        raise NotImplementedError  # a fault of ours: no route may give such a kind to its path or query

    def of_json(self, value: object) -> Value:
        """The value of a body's field; most are text there too."""
        if not isinstance(value, str):
            raise ValueError(value)
        return self.of_text(value)

    def refusal(self, name: str) -> errors.Refusal:
        """What a caller is told about a wrong value."""
        return errors.wrong(self.message) if self.message else errors.wrong_parameter(name, f"must be {self.expected}")

    def absence(self, name: str) -> errors.Refusal:
        """What a caller is told who left it out."""
        return errors.wrong(self.missing) if self.missing else errors.wrong_parameter(name, "is required")


class Integer(Kind[int]):
    """A whole number of a range, both ends included, in ASCII digits."""

    def __init__(self, low: int, high: int, message: str | None = None, missing: str | None = None) -> None:
        schema: JsonSchema = {"type": "integer", "minimum": low, "maximum": high}
        super().__init__(f"between {low} and {high}", schema, message, missing)
        self.low, self.high = low, high

    def of_text(self, text: str) -> int:
        if not _DIGITS.fullmatch(text):
            raise ValueError(text)
        return self.of_json(int(text))

    def of_json(self, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not self.low <= value <= self.high:
            raise ValueError(value)
        return value


class Flag(Kind[bool]):
    """true, false, 1 or 0."""

    def __init__(self) -> None:
        super().__init__("true, false, 1 or 0", {"type": "boolean"})

    def of_text(self, text: str) -> bool:
        if text not in ("true", "false", "1", "0"):
            raise ValueError(text)
        return text in ("true", "1")


class Choice(Kind[str]):
    """One of some words."""

    def __init__(self, *words: str, message: str | None = None) -> None:
        expected = f"{', '.join(words[:-1])} or {words[-1]}"
        super().__init__(expected, {"type": "string", "enum": list(words)}, message)
        self.words = words

    def of_text(self, text: str) -> str:
        if text not in self.words:
            raise ValueError(text)
        return text


class Choices(Kind[tuple[str, ...]]):
    """A JSON array of at least one out of some words; the answer has each once, in the order of `words`."""

    def __init__(self, *words: str) -> None:
        schema: JsonSchema = {"type": "array", "items": {"type": "string", "enum": list(words)}, "minItems": 1}
        super().__init__(f"a non-empty array out of {', '.join(words)}", schema)
        self.words = words

    def of_json(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not value or any(word not in self.words for word in value):
            raise ValueError(value)
        return tuple(word for word in self.words if word in value)


class Text(Kind[str]):
    """Text that Postgres can hold: no NUL, no lone surrogates. Unless `blank`, more than white space.

    `too_long` replaces the refusal of text above `most` characters.
    """

    def __init__(
        self,
        most: int,
        *,
        blank: bool = True,
        message: str | None = None,
        missing: str | None = None,
        too_long: str | None = None,
    ) -> None:
        expected = f"text of at most {most} characters" if blank else f"text of 1 to {most} characters"
        schema: JsonSchema = {"type": "string", "maxLength": most}
        super().__init__(expected, schema if blank else {**schema, "pattern": r"\S"}, message, missing)
        self.most, self.blank, self.too_long = most, blank, too_long

    def of_text(self, text: str) -> str:
        if "\0" in text or not (self.blank or text.strip()):
            raise ValueError(text)
        text.encode()  # raises UnicodeEncodeError, a ValueError, for a lone surrogate
        if len(text) > self.most:
            raise errors.wrong(self.too_long) if self.too_long else ValueError(text)
        return text


class Id(Kind[UUID]):
    """A UUID in its canonical form, in either case."""

    def __init__(self, message: str | None = None, missing: str | None = None) -> None:
        super().__init__("a UUID", {"type": "string", "format": "uuid"}, message, missing)

    def of_text(self, text: str) -> UUID:
        if not _UUID.fullmatch(text):
            raise ValueError(text)
        return UUID(text)


class Hex(Kind[bytes]):
    """So many bytes as hex digits in either case."""

    def __init__(self, length_bytes: int, message: str) -> None:
        pattern = f"^[0-9a-fA-F]{{{2 * length_bytes}}}$"
        super().__init__("hex digits", {"type": "string", "pattern": pattern}, message)
        self.length = 2 * length_bytes

    def of_text(self, text: str) -> bytes:
        if len(text) != self.length or not _HEX.fullmatch(text):
            raise ValueError(text)
        return bytes.fromhex(text)


class Moment(Kind[datetime]):
    """An ISO 8601 date or date and time; without an offset it is UTC.

    A date alone is its first instant, with `last` the last microsecond of that day.
    """

    def __init__(self, message: str | None = None, *, last: bool = False) -> None:
        schema: JsonSchema = {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]}
        super().__init__("an ISO 8601 date or date and time", schema, message)
        self.last = last

    def of_text(self, text: str) -> datetime:
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            return datetime.combine(date.fromisoformat(text), time.max if self.last else time.min, UTC)
        if not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]", text) or not text.isascii():
            raise ValueError(text)
        moment = datetime.fromisoformat(text)
        try:
            return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except OverflowError as error:
            raise ValueError(text) from error


class JsonObject(Kind[msgspec.Raw]):
    """Free-form key-value data, as compact JSON text in UTF-8. Keys stay in order and integers exact."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"a JSON object of at most {most_bytes} bytes", {"type": "object"})
        self.most_bytes = most_bytes

    def of_json(self, value: object) -> msgspec.Raw:
        compact = msgspec.json.encode(value)
        if not isinstance(value, dict) or len(compact) > self.most_bytes:
            raise ValueError(value)
        return msgspec.Raw(compact)


Offset = Annotated[int, Integer(0, HIGHEST_EXACT)]
Order = Annotated[Literal["asc", "desc"], Choice("asc", "desc")]


class Field(msgspec.Struct, frozen=True):
    """One field of a question or body, as requests carry it."""

    name: str  # on the wire
    attribute: str
    kind: Kind[Any]
    required: bool
    nullable: bool  # null is a value of its own
    clearing: bool  # an absent field means "leave it as it is", so null can't mean absent
    default: object  # msgspec.NODEFAULT where there is none, or where it is made anew each time


def fields_of(struct: type[Question] | type[Body]) -> tuple[Field, ...]:
    """The fields of a question or body with their kinds, in order."""
    hints = get_type_hints(struct, include_extras=True)
    found = []
    for info in msgspec.structs.fields(struct):
        accepted, kind, *_ = get_args(hints[info.name])
        assert isinstance(kind, Kind), f"{struct.__name__}.{info.name} carries no kind"
        found.append(
            Field(
                name=info.encode_name,
                attribute=info.name,
                kind=kind,
                required=info.required,
                nullable=NoneType in get_args(accepted),
                clearing=msgspec.UnsetType in get_args(accepted),
                default=info.default,
            )
        )
    return tuple(found)


Asked = TypeVar("Asked", bound=Question)
Told = TypeVar("Told", bound=Body)


def read_question(
    struct: type[Asked], fields: Sequence[Field], path: Mapping[str, str], query: MultiMapping[str]
) -> Asked:
    """The question of a request; unknown query parameters are ignored. Raises Refusal, for what is wrong first."""
    values: dict[str, object] = {}
    absent: list[Field] = []
    for field in fields:
        if field.name in path:
            text = path[field.name]
        else:
            given = query.getall(field.name, ())
            if not given:
                absent.append(field)
                continue
            if len(given) > 1:
                raise errors.wrong_parameter(field.name, "must be given once")
            text = given[0]
        try:
            values[field.attribute] = field.kind.of_text(text)
        except ValueError as error:
            raise field.kind.refusal(field.name) from error
    _refuse_missing(absent)
    question = struct(**values)
    question.check()
    return question


def read_body(struct: type[Told], fields: Sequence[Field], data: bytes) -> Told:
    """The body of a request; unknown fields are ignored. Raises Refusal, for what is wrong before what is missing."""
    sent = _json_object(data)
    values: dict[str, object] = {}
    absent: list[Field] = []
    for field in fields:
        if field.name not in sent:
            absent.append(field)
            continue
        value = sent[field.name]
        if value is None and field.nullable:
            values[field.attribute] = None
        elif value is None and not field.clearing:
            absent.append(field)
        else:
            try:
                values[field.attribute] = field.kind.of_json(value)
            except ValueError as error:
                raise field.kind.refusal(field.name) from error
    _refuse_missing(absent)
    body = struct(**values)
    body.check()
    return body


def _refuse_missing(absent: Sequence[Field]) -> None:
    for field in absent:
        if field.required:
            raise field.kind.absence(field.name)


def _json_object(data: bytes) -> dict[str, Any]:
    try:
        sent = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.invalid_json_body() from error
    if not isinstance(sent, dict) or not _storable(sent):
        raise errors.invalid_json_body()
    return sent


def _storable(value: object) -> bool:
    """Whether JSON is nested within reason and its texts, keys included, hold no NUL.

    Lone surrogates have been refused by the decoder.
    """
    level: list[object] = [value]
    for _ in range(DEEPEST_JSON):
        if any(isinstance(part, str) and "\0" in part for part in level):
            return False
        below: list[object] = []
        for part in level:
            if isinstance(part, dict):
                below += [*part.keys(), *part.values()]
            elif isinstance(part, list):
                below += part
        if not below:
            return True
        level = below
    return False
