"""The header `Ignored-Fields`: the parameters and body fields of a request that its route does not know.

It is a list of strings (RFC 8941). A field that another endpoint can change has that endpoint as parameter `use`:
`"status";use="POST /v1/admin/users/{id}/suspend", "nmae"`. If not all names fit, the token `more` ends the list.
"""

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from api.parameters import Field

HEADER = "Ignored-Fields"

_MAX_NAME_LENGTH, _MAX_HEADER_LENGTH = 100, 1_000  # a proxy may have room for 4,000 bytes of headers
_MORE = "more"
_PLAIN = " !#$&'()*+,/:;<=>?@[]^`{|}"  # printable ASCII without the quote, the backslash and the percent sign


def fields(known: Sequence[Field], sent: Iterable[str]) -> list[str]:
    """The names in a query or body that are not those of known fields, in order."""
    names = {field.name for field in known}
    return [name for name in dict.fromkeys(sent) if name not in names]


def body_fields(known: Sequence[Field], sent: Mapping[str, object]) -> list[str]:
    """The names in a body that are not those of known fields; those inside an object such as `quota` as `quota.x`."""
    unknown = fields(known, sent)
    for field in known:
        parts, value = field.kind.schema.get("properties"), sent.get(field.name)
        if isinstance(parts, dict) and isinstance(value, dict):
            unknown += [f"{field.name}.{name}" for name in value if name not in parts]
    return unknown


def header(ignored: Sequence[str], elsewhere: Mapping[str, str]) -> str:
    """The value of the header, with the first names that fit. `elsewhere` are the endpoints for some of them."""
    items: list[str] = []
    room = _MAX_HEADER_LENGTH - len(_MORE)
    for name in ignored:
        item = _item(name, elsewhere.get(name))
        room -= len(item) + len(", ")
        if room < 0:
            items.append(_MORE)
            break
        items.append(item)
    return ", ".join(items)


def _item(name: str, endpoint: str | None) -> str:
    """One name; characters that a header can't carry are percent-encoded."""
    shown = f'"{quote(name[:_MAX_NAME_LENGTH], safe=_PLAIN, errors="surrogateescape")}"'
    return shown if endpoint is None else f'{shown};use="{endpoint}"'
