"""Objects of answers as events show them: quantities that may exceed 2^53 are texts, exact in every JSON parser.

Which fields these are follows from their types: those of `Quantity` and `Change` in `api/answers.py`.
"""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET

from api.answers import Change, Quantity, encode

_QUANTITIES = [get_args(kind)[1] for kind in (Quantity, Change)]
Show = Callable[[Any], Any]


def json_of(value: msgspec.Struct) -> str:
    """An object of an answer as JSON, with quantities as texts."""
    return encode(_of_struct(type(value))(value)).decode()


def _shown_as(kind: Any) -> Show:
    """How values of a type are shown."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _digits if any(each in _QUANTITIES for each in kind.__metadata__) else _shown_as(arguments[0])
    if origin in (list, tuple):
        item = _shown_as(arguments[0])
        return lambda value: [item(each) for each in value]
    if origin is dict:
        item = _shown_as(arguments[1])
        return lambda value: {key: item(each) for key, each in value.items()}
    if _is_union(kind):
        return _of_union(arguments)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return _of_struct(kind)
    return _as_it_is


@cache
def _of_struct(kind: type[msgspec.Struct]) -> Show:
    hints = get_type_hints(kind, include_extras=True)
    fields = [(info.name, info.encode_name, _shown_as(hints[info.name])) for info in msgspec.structs.fields(kind)]

    def show(value: Any) -> dict[str, Any]:
        shown = ((name, part(each)) for field, name, part in fields if (each := getattr(value, field)) is not UNSET)
        return dict(shown)

    return show


def _of_union(kinds: tuple[Any, ...]) -> Show:
    """A union has at most one kind of quantity, of object, of map and of list."""
    by_shape = {_shape(kind): _shown_as(kind) for kind in kinds}

    def show(value: Any) -> Any:
        return by_shape.get(_shape_of(value), _as_it_is)(value)

    return show


def _shape(kind: Any) -> type:
    origin = get_origin(kind)
    if origin is Annotated:
        return _shape(get_args(kind)[0])
    plain = origin or kind
    return msgspec.Struct if isinstance(plain, type) and issubclass(plain, msgspec.Struct) else plain


def _shape_of(value: Any) -> type:
    return msgspec.Struct if isinstance(value, msgspec.Struct) else type(value)


def _is_union(kind: Any) -> bool:
    return get_origin(kind) is Union or type(kind).__name__ == "UnionType"


def _digits(value: int) -> str:
    return str(value)


def _as_it_is(value: Any) -> Any:
    return value
