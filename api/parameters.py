"""Parameters and body fields of a request: type, range, and the error message if they are wrong.

A question (path and query) and a body are frozen Structs whose fields are annotated with a kind: `limit: Annotated[int,
Integer(1, 100)] = 20`. Kinds parse requests, and describe them in /openapi.json.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from types import NoneType
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args, get_type_hints
from uuid import UUID

import msgspec
from multidict import MultiMapping

from api import errors

Value = TypeVar("Value")
JsonSchema = dict[str, object]
Message = str | Callable[[], errors.Refusal] | None

MAX_JSON_DEPTH = 100
"""Maximum nesting of a body. Deeper JSON could exhaust the stack of a client that reads it back."""

MAX_SAFE_INTEGER = 2**53 - 1
"""The largest integer that every JSON parser reads exactly. It is enough for any offset and slot."""

_LATEST = datetime(9999, 12, 31, 23, 59, 59, 999_998, UTC)  # asyncpg stores a microsecond more as infinity
_SPACE_FOR_PLUS = re.compile(r"^(.{10}[T ].*[0-9]) (?=[0-9]{2}:[0-9]{2}$)")
_DIGITS = re.compile(r"[0-9]{1,19}")
_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = re.compile(r"[0-9a-fA-F]*")


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The path and query parameters of a request. A field named in the path template is read from the path."""

    def check(self) -> None:
        """Raise a refusal if valid fields contradict each other."""


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON body of a request."""

    def check(self) -> None:
        """Raise a refusal if valid fields contradict each other."""

    def given(self) -> dict[str, Any]:
        """The fields that the request contains, with their values: those that are not UNSET."""
        fields = msgspec.structs.asdict(self)
        return {name: value for name, value in fields.items() if value is not msgspec.UNSET}


class Kind(Generic[Value]):
    """The values that a field accepts. `of_text` parses parameters, `of_json` body fields. Both raise ValueError, or
    a Refusal if the error needs another text.

    `expected` completes the error "<name> must be …". `message`, a text or the refusal itself, replaces that error, and
    `missing` the one for a required field that is absent.
    """

    def __init__(
        self, expected: str, schema: Mapping[str, object], message: Message = None, missing: str | None = None
    ) -> None:
        self.expected, self.schema, self.message, self.missing = expected, dict(schema), message, missing

    def of_text(self, text: str) -> Value:
        """The value of a path or query parameter. Kinds that only bodies use don't implement it."""
        raise NotImplementedError  # our own bug: a route uses such a kind in its path or query

    def of_json(self, value: object) -> Value:
        """The value of a body field; by default, a string in the form of a parameter."""
        if not isinstance(value, str):
            raise ValueError(value)
        return self.of_text(value)

    def refusal(self, name: str) -> errors.Refusal:
        """The error for a wrong value."""
        if callable(self.message):
            return self.message()
        if self.message:
            return errors.invalid_parameter(self.message)
        return errors.invalid_parameter(f"{name} must be {self.expected}")

    def absence(self, name: str) -> errors.Refusal:
        """The error for a missing required field."""
        return errors.missing_parameter(self.missing or f"{name} is required")


class Integer(Kind[int]):
    """An integer within an inclusive range; as a parameter, in ASCII digits."""

    def __init__(self, low: int, high: int, message: Message = None, missing: str | None = None) -> None:
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
    """One of several words."""

    def __init__(self, *words: str, message: Message = None) -> None:
        expected = f"{', '.join(words[:-1])} or {words[-1]}"
        super().__init__(expected, {"type": "string", "enum": list(words)}, message)
        self.words = words

    def of_text(self, text: str) -> str:
        if text not in self.words:
            raise ValueError(text)
        return text


class Choices(Kind[tuple[str, ...]]):
    """A JSON array of words, `least` or more. The value has each word once, in the order they were sent."""

    def __init__(self, *words: str, least: int = 1) -> None:
        schema: JsonSchema = {"type": "array", "items": {"type": "string", "enum": list(words)}, "minItems": least}
        super().__init__(f"{'a non-empty' if least else 'an'} array with values from: {', '.join(words)}", schema)
        self.words, self.least = words, least

    def of_json(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or len(value) < self.least or any(word not in self.words for word in value):
            raise ValueError(value)
        return tuple(dict.fromkeys(value))


class Texts(Kind[tuple[str, ...]]):
    """A JSON array of 1 to `max_items` different texts, each of at most `max_length` characters."""

    def __init__(self, max_items: int, max_length: int) -> None:
        items: JsonSchema = {"type": "string", "maxLength": max_length}
        schema: JsonSchema = {
            "type": "array",
            "items": items,
            "minItems": 1,
            "maxItems": max_items,
            "uniqueItems": True,
        }
        super().__init__(f"an array of 1 to {max_items} texts", schema)
        self.max_items, self.max_length = max_items, max_length

    def of_json(self, value: object) -> tuple[str, ...]:
        if not isinstance(value, list) or not 1 <= len(value) <= self.max_items:
            raise ValueError(value)
        if not all(isinstance(text, str) and len(text) <= self.max_length for text in value):
            raise ValueError(value)
        return tuple(value)


class Text(Kind[str]):
    """Text that Postgres can store: no NUL, no lone surrogates. If `blank` is false, more than white space.

    `too_long` replaces the error for text of more than `max_length` characters.
    """

    def __init__(
        self,
        max_length: int,
        *,
        blank: bool = True,
        message: Message = None,
        missing: str | None = None,
        too_long: str | None = None,
    ) -> None:
        expected = f"text of at most {max_length} characters" if blank else f"text of 1 to {max_length} characters"
        schema: JsonSchema = {"type": "string", "maxLength": max_length}
        super().__init__(expected, schema if blank else {**schema, "pattern": r"\S"}, message, missing)
        self.max_length, self.blank, self.too_long = max_length, blank, too_long

    def of_text(self, text: str) -> str:
        if "\0" in text or not (self.blank or text.strip()):
            raise ValueError(text)
        text.encode()  # raises UnicodeEncodeError, a ValueError, for a lone surrogate
        if len(text) > self.max_length:
            raise errors.invalid_parameter(self.too_long) if self.too_long else ValueError(text)
        return text


class Id(Kind[UUID]):
    """A UUID in canonical form, in upper or lower case."""

    def __init__(self, message: Message = None, missing: str | None = None) -> None:
        super().__init__("a UUID", {"type": "string", "format": "uuid"}, message, missing)

    def of_text(self, text: str) -> UUID:
        if not _UUID.fullmatch(text):
            raise ValueError(text)
        return UUID(text)


class Hex(Kind[bytes]):
    """A fixed number of bytes as hex digits, in upper or lower case."""

    def __init__(self, length_bytes: int, message: Message) -> None:
        pattern = f"^[0-9a-fA-F]{{{2 * length_bytes}}}$"
        super().__init__("hex digits", {"type": "string", "pattern": pattern}, message)
        self.length = 2 * length_bytes

    def of_text(self, text: str) -> bytes:
        if len(text) != self.length or not _HEX.fullmatch(text):
            raise ValueError(text)
        return bytes.fromhex(text)


class Moment(Kind[datetime]):
    """An ISO 8601 date, or date and time; UTC unless it has an offset.

    A date alone means the start of that day or, with `last`, its last microsecond. The last microsecond of the year
    9999 becomes the one before. In a parameter, a space before an offset is read as the `+` that the query contained
    without encoding.
    """

    def __init__(self, message: Message = None, *, last: bool = False) -> None:
        schema: JsonSchema = {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]}
        super().__init__("an ISO 8601 date or date and time", schema, message)
        self.last = last

    def of_text(self, text: str) -> datetime:
        return self.of_json(_SPACE_FOR_PLUS.sub(r"\1+", text))

    def of_json(self, value: object) -> datetime:
        if not isinstance(value, str):
            raise ValueError(value)
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value):
            return datetime.combine(date.fromisoformat(value), time.max if self.last else time.min, UTC)
        if not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]", value) or not value.isascii():
            raise ValueError(value)
        moment = datetime.fromisoformat(value)
        try:
            in_utc = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except OverflowError as error:
            raise ValueError(value) from error
        return min(in_utc, _LATEST)


class JsonObject(Kind[msgspec.Raw]):
    """Free-form key-value data, as compact JSON in UTF-8. Keys stay in order, integers stay exact."""

    def __init__(self, max_bytes: int) -> None:
        super().__init__(f"a JSON object of at most {max_bytes} bytes", {"type": "object"})
        self.max_bytes = max_bytes

    def of_json(self, value: object) -> msgspec.Raw:
        compact = msgspec.json.encode(value)
        if not isinstance(value, dict) or len(compact) > self.max_bytes:
            raise ValueError(value)
        return msgspec.Raw(compact)


Limit = Annotated[int, Integer(1, 500)]
"""Of a list whose entries are short."""
Offset = Annotated[int, Integer(0, MAX_SAFE_INTEGER)]
Order = Annotated[Literal["asc", "desc"], Choice("asc", "desc")]


class ListQuestion(Question, frozen=True, kw_only=True):
    """A page of a list, which is newest or largest first unless `order` is `asc`."""

    limit: Limit = 100
    offset: Offset = 0
    order: Order = "desc"


class Field(msgspec.Struct, frozen=True):
    """A field of a question or body."""

    name: str  # in requests
    attribute: str
    kind: Kind[Any]
    required: bool
    nullable: bool  # null is a valid value
    keeps_if_absent: bool  # an absent field means "leave unchanged", so null must not be taken for absent
    default: object  # msgspec.NODEFAULT if there is none, or if a factory makes it


def fields_of(struct: type[Question] | type[Body]) -> tuple[Field, ...]:
    """The fields of a question or body, in order."""
    hints = get_type_hints(struct, include_extras=True)
    fields = []
    for info in msgspec.structs.fields(struct):
        accepted, kind, *_ = get_args(hints[info.name])
        assert isinstance(kind, Kind), f"{struct.__name__}.{info.name} has no kind"
        fields.append(
            Field(
                name=info.encode_name,
                attribute=info.name,
                kind=kind,
                required=info.required,
                nullable=NoneType in get_args(accepted),
                keeps_if_absent=msgspec.UnsetType in get_args(accepted),
                default=info.default,
            )
        )
    return tuple(fields)


QuestionT = TypeVar("QuestionT", bound=Question)
BodyT = TypeVar("BodyT", bound=Body)


def read_question(
    struct: type[QuestionT], fields: Sequence[Field], path: Mapping[str, str], query: MultiMapping[str]
) -> QuestionT:
    """Parse the question of a request. Unknown query parameters are ignored.

    Raises Refusal; wrong parameters are reported before missing ones.
    """
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
                raise errors.invalid_parameter(f"{field.name} must be given once")
            text = given[0]
        try:
            values[field.attribute] = field.kind.of_text(text)
        except ValueError as error:
            raise field.kind.refusal(field.name) from error
    _refuse_missing(absent)
    question = struct(**values)
    question.check()
    return question


def read_body(struct: type[BodyT], fields: Sequence[Field], sent: Mapping[str, Any]) -> BodyT:
    """Parse the body of a request. Unknown fields are ignored, unless its Struct forbids them.

    Raises Refusal; wrong fields are reported before missing ones.
    """
    values: dict[str, object] = {}
    absent: list[Field] = []
    if struct.__struct_config__.forbid_unknown_fields:
        for name in sent.keys() - {field.name for field in fields}:
            known = ", ".join(field.name for field in fields)
            raise errors.invalid_parameter(f"{name} is unknown: fields are {known}")
    for field in fields:
        if field.name not in sent:
            absent.append(field)
            continue
        value = sent[field.name]
        if value is None and field.nullable:
            values[field.attribute] = None
        elif value is None and not field.keeps_if_absent:
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


def json_object(data: bytes) -> dict[str, Any]:
    """The JSON object of a body. Raises Refusal."""
    try:
        sent = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise errors.invalid_json_body() from error
    if not isinstance(sent, dict) or not _storable(sent):
        raise errors.invalid_json_body()
    return sent


def _storable(value: object) -> bool:
    """Whether JSON is at most MAX_JSON_DEPTH levels deep, and no string or key contains NUL.

    The decoder has already refused lone surrogates.
    """
    level: list[object] = [value]
    for _ in range(MAX_JSON_DEPTH):
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
