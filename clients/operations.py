"""The operations of /openapi.json, for the TypeScript generator. The Python generator uses parts of them."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from api.reference.samples import answer_of, body_of, is_download, is_event_stream, key_of

Json = dict[str, Any]
Quantities = dict[str, Any] | bool


class Field(NamedTuple):
    """A parameter of the path or the query, or a field of the body."""

    name: str
    schema: Json
    required: bool
    description: str


class Listed(NamedTuple):
    """The items of a list: their type, and the field of `data` that contains them, or "" if `data` is the list."""

    item: str
    inside: str


class Operation(NamedTuple):
    """An operation. `body` is None without a body, `answer` is None for text, `listed` is None except for a paged list.

    `idempotent` operations take an `Idempotency-Key`; the answer of a `download` is a stream of lines, that of `events`
    one without end.
    """

    name: str
    method: str
    path: str
    summary: str
    description: str
    key: str
    in_path: list[Field]
    in_query: list[Field]
    body: list[Field] | None
    answer: Json | None
    quantities: Quantities
    listed: Listed | None
    idempotent: bool
    download: bool
    events: bool


def operations(described: Json) -> Iterator[Operation]:
    """Every operation of a document, in its order."""
    schemas = described["components"]["schemas"]
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            answer, body = answer_of(operation), body_of(operation)
            yield Operation(
                name=operation["operationId"],
                method=method.upper(),
                path=path,
                summary=operation["summary"],
                description=operation["description"],
                key=key_of(operation),
                in_path=_parameters(operation, "path"),
                in_query=_parameters(operation, "query"),
                body=None if body is None else _body_fields(body),
                answer=answer,
                quantities=quantities(answer or {}, schemas),
                listed=listed(answer or {}, schemas),
                idempotent=takes_idempotency_key(operation),
                download=is_download(operation),
                events=is_event_stream(operation),
            )


def takes_idempotency_key(operation: Json) -> bool:
    """Whether requests for an operation may carry an `Idempotency-Key`."""
    return any(
        (parameter["in"], parameter["name"]) == ("header", "Idempotency-Key") for parameter in operation["parameters"]
    )


def _parameters(operation: Json, place: str) -> list[Field]:
    return [
        Field(parameter["name"], parameter["schema"], parameter["required"], parameter["description"])
        for parameter in operation["parameters"]
        if parameter["in"] == place
    ]


def _body_fields(schema: Json) -> list[Field]:
    return [
        Field(name, of, name in schema["required"], of.get("description", ""))
        for name, of in schema["properties"].items()
    ]


def is_quantity(schema: Json) -> bool:
    """Whether a schema is that of a quantity (`api/answers.py`)."""
    return schema.get("format") in ("uint64", "int64") or schema.get("pattern") == "^-?[0-9]+$"


def quantities(schema: Json, schemas: Mapping[str, Json]) -> Quantities:
    """Where a value has quantities: by field for objects and lists of objects, True for one quantity, a list or a map
    of them, and False without any.
    """
    if is_quantity(schema):
        return True
    if "$ref" in schema:
        return quantities(_resolved(schema, schemas), schemas)
    if "properties" in schema:
        fields = {name: quantities(of, schemas) for name, of in schema["properties"].items()}
        return {name: where for name, where in fields.items() if where} or False
    inside = (schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", ()))
    for part in inside:
        if part and (where := quantities(part, schemas)):
            return where
    return False


def listed(answer: Json, schemas: Mapping[str, Json]) -> Listed | None:
    """The items of a page of a list; None for other answers."""
    properties = _resolved(answer, schemas).get("properties", {})
    if "pagination" not in properties:
        return None
    data = _resolved(properties["data"], schemas)
    if data.get("type") == "array":
        return Listed(_name(data["items"]), "")
    ((inside, items),) = ((name, of["items"]) for name, of in data["properties"].items() if of.get("type") == "array")
    return Listed(_name(items), inside)


def _resolved(schema: Json, schemas: Mapping[str, Json]) -> Json:
    return schemas[_name(schema)] if "$ref" in schema else schema


def _name(reference: Json) -> str:
    name: str = reference["$ref"].rpartition("/")[2]
    return name
