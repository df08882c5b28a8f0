"""OpenAPI 3.1 from the table of routes: the same kinds, Structs and refusals that serve the requests."""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from typing import Any

import msgspec
from aiohttp import web

from api import answers, errors, examples
from api.ask import Nothing, OpenAsk
from api.errors import Refusal
from api.parameters import Field, Flag, JsonSchema
from api.route import JSON, Route

Json = dict[str, Any]

_INTRODUCTION = """\
A complete Cardano chain index, and the administration of those who may ask it.

Chain endpoints take an **API key**, which is bound to one network; admin endpoints take an **admin key**. Both go into
the `Authorization` header as `Bearer <key>`. Every answer is `{success: true, data, …}` or `{success: false, error}`.
Integers may exceed 2^53: read them with a parser that keeps them exact. Times are UTC.

This document and its examples are licensed under Apache-2.0; the service itself is free software, GPL-3.0-or-later.
"""

# A tag per module that answers, in the order in which the page shows them.
_TAGS = {
    "transactions": ("Transactions", "What happened on the chain."),
    "assets": ("Assets", "Native assets, their holders, transactions, mints and burns."),
    "pools": ("Stake pools", "Pools and their delegators."),
    "users": ("User accounts", "The customers of a partner."),
    "credentials": ("Credentials", "The API keys of those customers."),
    "usage": ("Usage", "How much each of them asked."),
    "audit": ("Audit log", "Who did what."),
    "admin_keys": ("Admin keys", "The keys of partners, for the operator alone."),
    "health": ("Service", "Open to everybody."),
}

_PARAMETERS = {
    "limit": "The size of a page.",
    "offset": "How many results to skip. Every offset costs the same.",
    "order": "By slot or figure: `desc` is newest or largest first.",
    "fromSlot": "List transactions at or before this slot, or at or after it where `order` is `asc`.",
    "groupByPolicy": "Whether assets are maps of asset names by policy id, in place of `<policy_id>.<asset_name>`.",
    "address": "A payment address of the key's network: bech32, or Byron base58.",
    "hash": "The hash of a transaction.",
    "asset": "`<policy_id>.<asset_name>`, both in hex; the name may be empty.",
    "policyId": "The hash of a minting policy's script.",
    "poolId": "A stake pool: bech32 `pool1…`, or 56 hex digits.",
    "metadata_source": "Where to read metadata; `auto` takes the first of cip68, cip25 and registry that has any.",
    "id": "The UUID from the answer that created it.",
    "external_id": "The partner's own reference.",
    "status": "Only accounts in this state.",
    "includeRevoked": "Whether revoked credentials are listed too.",
    "start_date": "From when on. A date alone is its first instant.",
    "end_date": "Until when. A date alone includes that whole day.",
    "action": "Only entries of this action.",
    "admin_key_id": "Only entries of this admin key.",
    "target_id": "Only entries about this resource.",
    "file": "A file of the page.",
}

# What to fill into bodies; what is not here is left to the reader.
_FIELDS: Json = {
    "name": "Example",
    "entity_name": "Example Wallet",
    "external_id": "customer-1",
    "email": "someone@example.com",
    "billing_plan": "standard",
    "description": "Production backend",
    "metadata": {"tier": "gold"},
    "network_id": 1,
    "expires_at": "2099-12-31",
    "rate_limit_per_minute": 60,
    "permissions": ["manage_users", "manage_credentials"],
}

_HEADERS = {
    "RateLimit-Limit": "Requests that the key may make per minute.",
    "RateLimit-Remaining": "How many of them are left.",
    "RateLimit-Reset": "Seconds until one more is admitted.",
    "Retry-After": "Seconds to wait.",
}
_RETRY_HEADERS = {name: {"$ref": f"#/components/headers/{name}"} for name in _HEADERS}
_RATE_HEADERS = {name: told for name, told in _RETRY_HEADERS.items() if name != "Retry-After"}

_KEPT_DOCUMENTS = 4
_REF = "#/components/schemas/{name}"


async def openapi(ask: OpenAsk[Nothing]) -> web.Response:
    """Describe every path: this document."""
    values = await examples.known(ask.services)
    body = _encoded(ask.routes, tuple(values.items()))
    return web.Response(body=body, headers={"Content-Type": answers.CONTENT_TYPE})


@lru_cache(_KEPT_DOCUMENTS)
def _encoded(routes: tuple[Route, ...], values: tuple[tuple[str, str], ...]) -> bytes:
    return msgspec.json.encode(document(routes, dict(values)))


def document(routes: Sequence[Route], values: Mapping[str, str]) -> Json:
    """The OpenAPI document of a table of routes; `values` are examples of path parameters, by name."""
    answered = [route.answer for route in routes if issubclass(_origin(route.answer), msgspec.Struct)]
    schemas, components = msgspec.json.schema_components([*answered, answers.Failure], ref_template=_REF)
    failure = schemas[-1]
    schema_of = dict(zip(map(repr, answered), schemas, strict=False))
    paths: dict[str, Json] = {}
    for route in routes:
        answer = schema_of.get(repr(route.answer), {"type": "object" if route.media_type == JSON else "string"})
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, answer, failure, values)
    used = {_tag(route) for route in routes}
    return _plain_names(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Ledgerline",
                "version": "1",
                "summary": "Cardano transactions, assets and stake pools, and who may ask for them.",
                "description": _INTRODUCTION,
                "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": "/"}],
            "tags": [{"name": name, "description": told} for name, told in _TAGS.values() if name in used],
            "paths": paths,
            "components": {
                "schemas": {name: _always_complete(schema) for name, schema in components.items()},
                "headers": {
                    name: {"description": told, "schema": {"type": "integer"}} for name, told in _HEADERS.items()
                },
                "securitySchemes": {
                    "apiKey": {"type": "http", "scheme": "bearer", "description": "An API key, `iiak_…`."},
                    "adminKey": {"type": "http", "scheme": "bearer", "description": "An admin key, `iiak_admin_…`."},
                },
            },
        }
    )


def _operation(route: Route, answer: JsonSchema, failure: JsonSchema, values: Mapping[str, str]) -> Json:
    summary, _, description = (inspect.getdoc(route.handler) or "").partition("\n\n")
    said = HTTPStatus(route.status)
    success: Json = {"description": said.phrase, "content": {route.media_type: {"schema": answer}}}
    if route.who == "api key":
        success["headers"] = _RATE_HEADERS
    operation: Json = {
        "tags": [_tag(route)],
        "operationId": f"{route.handler.__module__.rpartition('.')[2]}_{route.handler.__name__}",
        "summary": summary.rstrip("."),
        "description": " ".join([*description.split(), *_who_may_call(route)]),
        "security": {"open": [], "api key": [{"apiKey": []}]}.get(route.who, [{"adminKey": []}]),
        "parameters": [_parameter(field, route, values) for field in route.fields],
        "responses": {str(route.status): success, **_failures(route, failure)},
    }
    if route.body is not None:
        operation["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": _body(route.body, route.body_fields)}},
        }
    return operation


def _tag(route: Route) -> str:
    module = route.handler.__module__.rpartition(".")[2]
    return _TAGS.get(module, _TAGS["health"])[0]


def _who_may_call(route: Route) -> Iterator[str]:
    if route.who == "bootstrap":
        yield "Only the bootstrap key may."
    elif route.who not in ("open", "api key"):
        yield f"Needs the permission `{route.who}`."


def _parameter(field: Field, route: Route, values: Mapping[str, str]) -> Json:
    in_path = f"{{{field.name}}}" in route.path
    schema = {"enum": [True, False, 1, 0]} if isinstance(field.kind, Flag) else dict(field.kind.schema)
    if not in_path:
        schema |= _default(field)
    example = {"example": values[field.name]} if in_path and field.name in values else {}
    return {
        "name": field.name,
        "in": "path" if in_path else "query",
        "required": field.required,
        "description": _PARAMETERS[field.name],
        "schema": schema,
        **example,
    }


def _body(struct: type[msgspec.Struct], fields: Iterable[Field]) -> JsonSchema:
    properties: dict[str, JsonSchema] = {}
    for field in fields:
        # In a POST null is the same as leaving a field out; where fields can be cleared, only those can be null.
        may_be_null = field.nullable or not (field.required or field.clearing)
        schema: JsonSchema = {"anyOf": [field.kind.schema, {"type": "null"}]} if may_be_null else field.kind.schema
        example = {"examples": [_FIELDS[field.name]]} if field.name in _FIELDS else {}
        properties[field.name] = schema | _default(field) | example
    return {
        "type": "object",
        "description": inspect.getdoc(struct),
        "properties": properties,
        "required": [field.name for field in fields if field.required],
    }


def _default(field: Field) -> Json:
    told = field.default not in (None, msgspec.NODEFAULT, msgspec.UNSET)
    return {"default": field.default} if told else {}


def _failures(route: Route, failure: JsonSchema) -> Json:
    """The answers that are no success, by status, with the texts that each may carry."""
    by_status: dict[int, list[Refusal]] = {}
    for refusal in _refusals(route):
        by_status.setdefault(refusal.status, []).append(refusal)
    found: Json = {}
    for status, refusals in sorted(by_status.items()):
        texts = list(dict.fromkeys(refusal.message for refusal in refusals))
        content: Json = {
            "schema": failure,
            "examples": {
                f"{number}": {"summary": text, "value": {"success": False, "error": text}}
                for number, text in enumerate(texts, 1)
            },
        }
        response: Json = {"description": HTTPStatus(status).phrase, "content": {JSON: content}}
        if route.who == "api key" and status not in (401, 403):
            response["headers"] = _RETRY_HEADERS if status == HTTPStatus.TOO_MANY_REQUESTS else _RATE_HEADERS
        found[str(status)] = response
    return found


def _refusals(route: Route) -> Iterator[Refusal]:
    """Everything that may go wrong on a route: the caller, the parameters, the body, the handler, ourselves."""
    yield errors.malformed_request()
    yield errors.not_found()
    if route.who == "api key":
        yield from (errors.missing_api_key(), errors.invalid_api_key(), errors.expired_api_key())
        yield from (errors.inactive_account(), errors.rate_limit_exceeded())
        yield from (errors.network_not_available(), errors.usage_not_recorded())
    elif route.who != "open":
        yield from (errors.missing_admin_key(), errors.invalid_admin_key(), errors.permission_denied(route.who))
    for field in route.fields:
        yield field.kind.refusal(field.name)
    if route.body is not None:
        yield from (errors.invalid_json_body(), errors.request_timeout(), errors.expectation_failed())
        for field in route.body_fields:
            yield field.kind.refusal(field.name)
            if field.required:
                yield field.kind.absence(field.name)
    for refusal in route.errors:
        yield refusal()
    yield errors.body_too_large()
    yield errors.internal_error()
    yield from (errors.database_not_available(), errors.too_slow())


def _always_complete(schema: Json) -> Json:
    """The schema of an answer: what has a default is still always there; only what may be unset is optional."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    required = {*schema.get("required", ()), *(name for name, told in properties.items() if "default" in told)}
    shown = {name: {key: value for key, value in told.items() if key != "default"} for name, told in properties.items()}
    return schema | {"properties": shown, "required": [name for name in shown if name in required]}


def _plain_names(described: Json) -> Json:
    """Give generic components the names that their titles suggest: `ChainPage_HistoryEntry_CursorPaging`."""
    text = msgspec.json.encode(described).decode()
    names = {
        name: re.sub(r"\W+|_+", "_", re.sub(r"(?:\w+\.)+", "", name)).strip("_")
        for name in described["components"]["schemas"]
    }
    assert len(set(names.values())) == len(names), "two components have the same name"
    for name, plain in names.items():
        text = text.replace(f'"{name}":', f'"{plain}":').replace(f'/{name}"', f'/{plain}"')
    renamed: Json = msgspec.json.decode(text)
    return renamed


def _origin(answer: Any) -> type:
    origin: type = getattr(answer, "__origin__", answer)
    return origin
