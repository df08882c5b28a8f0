"""OpenAPI 3.1, generated from the table of routes and the kinds, Structs and refusals that serve the requests."""

import inspect
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from pathlib import Path
from typing import Any, get_args

import msgspec
from aiohttp import web

from api import answers, errors
from api.admin.audit import Action
from api.ask import ChainChange, EventsAsk, Nothing, OpenAsk
from api.blockfrost import shape
from api.errors import Refusal
from api.events.stream import MEDIA_TYPE
from api.events.subscriptions import ToldEvent
from api.keys.caller import network_mismatch
from api.parameters import Field, JsonSchema
from api.reference import error_reference, messages, path_examples
from api.reference.samples import samples
from api.repeats import idempotency
from api.repeats.caching import METADATA_WARNING, SNAPSHOT_BLOCK
from api.route import JSON, Handler, Route
from shared.network import NETWORKS

Json = dict[str, Any]

_INTRODUCTION = """\
Query a complete index of the Cardano chain, and manage the accounts and keys of your customers.

Chain endpoints require an **API key**, which belongs to one network. Admin endpoints require an **admin key**. Send
either as `Authorization: Bearer <key>`. Responses are `{success: true, data, …}` or `{success: false, error}`, except
HTML pages, metrics, the usage export and the downloads of holders. Times are in UTC. Unknown parameters and fields are
ignored, and named in the header `Ignored-Fields`.

**First steps.** The operator of the service gives you an admin key. With it:

1. Create a user account for your customer: `POST /v1/admin/users`.
2. Issue it an API key for one network: `POST /v1/admin/credentials`. The key is shown once.
3. With the API key, query the chain: `GET /v1/network`.
4. Replace a key in use without any refused request: `POST /v1/admin/credentials/{id}/rotate` with an overlap, during
   which both keys are valid. `PUT …/limits` changes limits, `PUT …/restrictions` scopes and IP networks.
5. Read the usage: `GET /v1/admin/users/{id}/usage/breakdown`, or for all customers `GET /v1/admin/usage/export`.
   A request appears there within five seconds.

In [/console](/console) you can do the same by hand. The example `onboard` beside each client does it in one program.

**Exact integers.** Amounts are exact, and some exceed 2^53. JavaScript's `JSON.parse` rounds such numbers without an
error. Read them as text with a reviver that sees the source (Node.js 22, Chrome 114 and later), or use a parser that
keeps them, such as `lossless-json`:

```js
const exact = (key, value, {source}) =>
  typeof value === "number" && !Number.isSafeInteger(value) ? BigInt(source) : value;
JSON.parse('{"lovelace": 45000000000000001}', exact).lovelace; // 45000000000000001n
```

**Clients.** The folder `clients` in the source of Ledgerline has one for Python and one for TypeScript and JavaScript.
In a checkout, install them with `pip install ./clients/python` and `npm install ./clients/typescript`. They have a
method for each operation, read page after page and download line by line, keep integers exact, and wait when the
service asks for it. Each operation below has samples for both, which take the keys from the environment: `API_KEY` and
`ADMIN_KEY`.

**Errors.** Every error has a header `Error-Code`. The codes are stable; messages may become clearer. `x-errors` in this
document lists all codes, with their causes, remedies and examples.

This document and its examples are licensed under Apache-2.0; the service itself is free software, GPL-3.0-or-later.
"""

# A tag for each module with handlers, in the order of the page.
_TAGS = {
    **dict.fromkeys(
        ("transactions", "block_bytes"), ("Transactions", "Transactions of an address, or by hash, and their bytes.")
    ),
    "labels": ("Metadata", "Transaction metadata by label."),
    **dict.fromkeys(
        ("contracts", "script_redeemers"),
        ("Scripts and datums", "Scripts and datums, each by its hash, and the redeemers of a script."),
    ),
    "submission": ("Submission", "Evaluate, submit and follow transactions. Requires the scope `submit`."),
    "assets": ("Assets", "Native assets: metadata, holders, transactions, mints and burns."),
    "addresses": ("Addresses", "What an address holds."),
    "accounts": ("Stake accounts", "What the addresses of a stake account hold, its pool, rewards and transactions."),
    "payment_credentials": (
        "Payment credentials",
        "What the addresses with one payment credential hold together, and their transactions.",
    ),
    "totals": ("Totals", "What an address, an account or a payment credential has received and sent in all its life."),
    "utxos": ("Outputs", "A single output, spent or not."),
    "bulk": ("Several at once", "Up to 100 addresses, accounts, transactions, assets or outputs in one snapshot."),
    "exports": ("Downloads", "Whole lists as CSV, each from one snapshot."),
    **dict.fromkeys(
        ("pools", "pool_metadata"),
        ("Stake pools", "Stake pools, what they publish of themselves, and their delegators."),
    ),
    "blocks": ("Blocks", "Blocks and their transactions."),
    "epochs": ("Epochs", "Epochs: times, blocks, sums and protocol parameters."),
    "network": ("Network", "The network: tip, epoch, supply and stake, and its genesis."),
    **dict.fromkeys(
        ("subscriptions", "stream", "webhooks"),
        ("Events", "Subscriptions, the log of events of each, and its webhook. Requires the scope `events`."),
    ),
    "own_key": ("API key", "The calling key's own limits, expiry and restrictions."),
    "users": ("User accounts", "Your customers."),
    "credentials": ("Credentials", "API keys of your customers."),
    "limits": ("Limits and restrictions", "Rate limit, quota, IP networks and scopes of a credential's keys."),
    "usage": ("Usage", "Request counts per credential and per user account."),
    "breakdown": ("Usage breakdown", "Requests by endpoint, status and time, with response times."),
    "audit": ("Audit log", "Administrative actions: who did what, and when."),
    "admin_keys": ("Admin keys", "Keys of partners. Requires the bootstrap key."),
    **dict.fromkeys(
        ("health", "status", "metrics", "docs", "openapi"),
        ("Service", "Health, metrics and documentation. No key required."),
    ),
}

*_OTHER_NETWORKS, _LAST_NETWORK = (network.name for network in NETWORKS)
_NETWORK_IDS = ", ".join(f"{network.network_id} {network.name}" for network in NETWORKS).replace(" ", " is ", 1)

_PARAMETERS = {
    "limit": "Maximum number of results.",
    "offset": "Number of results to skip.",
    "cursor": "The `next_cursor` of a page of this list, to continue after that page. `offset` counts from there.",
    "order": "Sort order, by {sorted_by}: `desc` lists the newest or largest first.",
    "fromSlot": "List transactions at or before this slot or, if `order` is `asc`, at or after it.",
    "groupByPolicy": "Nest assets by policy id, then by asset name; otherwise keys are `<policy_id>.<asset_name>`.",
    "address": "Payment address on the network of the API key: bech32, or base58 for a Byron address.",
    "stake_address": "Stake address on the network of the API key, bech32.",
    "payment_credential": "Hash of a key or of a script, `addr_vkh1…` or `script1…`, or a key, `addr_vk1…` (CIP-5).",
    "hash": "Transaction hash.",
    "label": "Label of metadata: a number from 0 to 18446744073709551615.",
    "scriptHash": "Script hash: 56 hex digits, as in a policy id or in the credential of a script.",
    "datumHash": "Datum hash: 64 hex digits.",
    "tx_hash": "Hash of the transaction that made the output.",
    "index": "Index of the output in its transaction.",
    "asset": "Asset as `<policy_id>.<asset_name>` in hex, or as its fingerprint. The dot is optional before a name.",
    "policyId": "Policy id: the hash of the minting policy's script.",
    "poolId": "Pool id: bech32 `pool1…`, or 56 hex digits.",
    "block": "Hash of a block, its number, or `latest` for the last indexed one.",
    "epoch": "Number of an epoch, or `latest` for that of the last indexed block.",
    "metadata_source": "Source of the metadata. `auto` uses the first of cip68, cip25 and registry that has any.",
    "id": "UUID of the resource.",
    "after": "Number of an event: the page begins after it.",
    "after_block": "Hash of a block whose state was loaded: the page begins after the events up to it.",
    "ticket": "A ticket instead of an API key, for callers that can't send headers.",
    "wait": "Seconds to wait for an event, if there is none yet.",
    "external_id": "Your own reference for the customer.",
    "status": "List only those with this status.",
    "search": "List only those that contain this text, ignoring case: users by name, reference or email, credentials "
    "by name, description or key prefix.",
    "user_account_id": "List only credentials of this account.",
    "network_id": f"List only credentials for this network: {_NETWORK_IDS}.",
    "expires_within": "List only active credentials that expire within this number of days.",
    "includeRevoked": "Include revoked credentials.",
    "includeReads": "Include `…viewed` and `…listed` entries, which reading leaves.",
    "start_date": "Start (inclusive). A date without a time means 00:00 UTC.",
    "end_date": "End. A time at the beginning of a minute excludes that minute; a date without a time includes that "
    "whole day.",
    "granularity": "Length of the periods in UTC.",
    "group_by": "Dimensions to group by within a period.",
    "format": "`csv` with a header line, or `ndjson`: one JSON object per line.",
    "action": f"List only entries with this action: {', '.join(f'`{action}`' for action in get_args(Action))}.",
    "admin_key_id": "List only entries of this admin key.",
    "target_id": "List only entries about this resource.",
    "target_type": "List only entries about this kind of resource.",
    "request_id": "List only entries of the request with this `X-Request-Id`.",
    "from": "List only entries from this time on. A date without a time means 00:00 UTC.",
    "to": "List only entries up to this time. A date without a time includes that whole day.",
    "file": "File name.",
    "network": f"Network: {', '.join(_OTHER_NETWORKS)} or {_LAST_NETWORK}.",
}

# The meaning of body fields whose names do not explain it.
_MEANINGS = {
    "external_id": "Your own reference for the customer, unique among your accounts.",
    "metadata": "Any JSON object of your own.",
    "network_id": f"The network of the key: {_NETWORK_IDS}. `/v1/status` lists those of this service.",
    "expires_at": "When the key expires. A date without a time means 00:00 UTC.",
    "rate_limit_per_minute": "Maximum number of requests in any 60 seconds.",
    "overlap_seconds": "How long the former key remains valid; with 0, it expires immediately.",
    "quota": "Maximum number of requests per day or calendar month, in UTC.",
    "ip_networks": "Networks from which the key may be used, in CIDR notation.",
    "scopes": "Kinds of chain endpoints that the key may call.",
}

# Example values for body fields.
_FIELDS: Json = {
    "cbor": "84a300d9010281825820…f5f6",
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
    "overlap_seconds": 86_400,
    "quota": {"requests": 100_000, "per": "month"},
    "ip_networks": ["203.0.113.0/24"],
    "scopes": ["transactions", "assets"],
    "subjects": [
        {"kind": "transaction", "policy_id": "7" * 56, "direction": "in", "least_quantity": "1000000"},
        {"kind": "block"},
    ],
    "confirmations": 0,
    "begins": "at_once",
    "url": "https://example.com/cardano",
}

_HEADERS = {
    "X-Request-Id": ("string", "Id of the request: yours, if you sent a valid one."),
    "Error-Code": ("string", "Code of the error; `x-errors` in this document explains it."),
    "RateLimit-Limit": ("integer", "Requests allowed per minute."),
    "RateLimit-Remaining": ("integer", "Requests left in the sliding minute."),
    "RateLimit-Reset": ("integer", "Seconds until the oldest admitted request leaves the sliding minute."),
    "RateLimit-Policy": ("string", 'The limit as a structured field: `"minute";q=<requests>;w=<seconds>`.'),
    "RateLimit": (
        "string",
        'Requests left in the window: `"minute";r=<requests>;t=<seconds until the oldest leaves it>`.',
    ),
    "Retry-After": ("integer", "Seconds to wait before the next request."),
    errors.FITTING_LIMIT: ("integer", "Only with `answer_too_large`: the highest `limit`, or the most ids, that fit."),
    "ETag": ("string", "Tag of this answer, for `If-None-Match`."),
    METADATA_WARNING: (
        "string",
        'Only if the token registry failed: `source_failed;source="registry"`. `metadata` is its cached entry or null.',
    ),
    SNAPSHOT_BLOCK: (
        "string",
        "Hash of the last block in the snapshot of this answer: the `after_block` of a page or a stream of events.",
    ),
    "Requests-Counted": ("integer", "How many requests this one counts as: 1, however many ids it has."),
    "Idempotent-Replayed": (
        "string",
        "`true` if this is the answer of an earlier request with the same `Idempotency-Key`.",
    ),
    "Link": ("string", 'Address of the next page, `<…>; rel="next"`; absent on the last one.'),
}
_RATE_HEADERS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy", "RateLimit")

# An answer for each operation, and one for each error, as recorded by `python -m tests.api.asking`.
_ANSWERS: Json = msgspec.json.decode((Path(__file__).parent / "examples.json").read_bytes())

_EXECUTED_ONCE = (
    "A string of your choice, such as a UUID. For 24 hours, a repeated request with the same key and body is not "
    "executed again: it gets the same answer or, if that contained a key, 409."
)
_ONLY_READS = "Accepted on every POST. This one only reads, so repeating it is safe without a key."


def _idempotency_key(route: Route) -> Json:
    return {
        "name": idempotency.HEADER,
        "in": "header",
        "required": False,
        "description": _EXECUTED_ONCE if route.runs_once else _ONLY_READS,
        "schema": {
            "type": "string",
            "minLength": 1,
            "maxLength": idempotency.MAX_KEY_LENGTH,
            "pattern": "^[!-~]([ -~]*[!-~])?$",
        },
    }


_ISSUED_TO = "credential 1b4e28ba-2fa1-4d3b-a3f5-ef19b5a7633b"

_OF_OBJECTS = (JSON, MEDIA_TYPE)  # an object, or several, each an event
_CACHED_DOCUMENTS = 4
_REF = "#/components/schemas/{name}"


def handler(routes: Callable[[], tuple[Route, ...]]) -> Handler:
    """The handler of /openapi.json. It reads the table with each request, because the table contains this handler."""

    async def get_openapi_document(ask: OpenAsk[Nothing]) -> web.Response:
        """Get this OpenAPI document."""
        services = ask.services
        values = await services.shared_readings.get("examples", lambda: path_examples.path_parameters(services))
        body = _encoded(routes(), tuple(values.items()))
        return web.Response(body=body, headers={"Content-Type": answers.CONTENT_TYPE})

    return get_openapi_document


@lru_cache(_CACHED_DOCUMENTS)
def _encoded(routes: tuple[Route, ...], values: tuple[tuple[str, str], ...]) -> bytes:
    return msgspec.json.encode(document(routes, dict(values)))


def document(routes: Sequence[Route], values: Mapping[str, str]) -> Json:
    """The OpenAPI document for a table of routes. `values` are example path parameters by name."""
    answered = [route.answer for route in routes if issubclass(_origin(route.answer), msgspec.Struct)]
    schemas, components = msgspec.json.schema_components([*answered, ToldEvent, answers.Failure], ref_template=_REF)
    enums = {
        _REF.format(name=name): {"enum": component["enum"]}
        for name, component in components.items()
        if "enum" in component
    }
    event, failure = schemas[-2:]
    schema_of = dict(zip(map(repr, answered), schemas, strict=False))
    paths: dict[str, Json] = {}
    for route in routes:
        other = "string" if {*route.media_types}.isdisjoint(_OF_OBJECTS) else "object"
        answer = schema_of.get(repr(route.answer), {"type": other})
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, answer, failure, values)
    used = {_tag(route) for route in routes}
    tags = {name: text for name, text in _TAGS.values() if name in used}
    return _plain_names(
        {
            "openapi": "3.1.0",
            "info": {
                "title": "Ledgerline",
                "version": "1",
                "summary": "Cardano transactions, assets, stake pools, blocks and epochs, and the administration of "
                "API keys.",
                "description": _INTRODUCTION,
                "license": {"name": "Apache License 2.0", "identifier": "Apache-2.0"},
            },
            "servers": [{"url": "/"}],
            "tags": [{"name": name, "description": text} for name, text in tags.items()],
            "paths": paths,
            "webhooks": messages.section(event, _ANSWERS["operations"]["list_events"]["answer"]["data"][0]),
            "x-errors": list(_errors()),
            "components": {
                "schemas": {
                    name: _component(schema, enums) for name, schema in components.items() if "enum" not in schema
                },
                "headers": {
                    name: {"description": text, "schema": {"type": kind}} for name, (kind, text) in _HEADERS.items()
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
    example = _ANSWERS["operations"].get(route.operation, {})
    content: Json = {media_type: {"schema": answer} for media_type in route.media_types}
    if example and (media_type := example.get("media_type", JSON)) in content:
        content[media_type]["example"] = example["answer"]
    success: Json = {
        "description": HTTPStatus(route.status).phrase,
        "headers": _headers(*_success_headers(route)),
        "content": content,
    }
    operation: Json = {
        "tags": [_tag(route)],
        "operationId": route.operation,
        "summary": summary.rstrip("."),
        "description": " ".join([*description.split(), *_required_permission(route)]),
        "security": {"open": [], "api key": [{"apiKey": []}]}.get(route.access, [{"adminKey": []}]),
        "parameters": [
            *(_parameter(field, route, values) for field in route.fields),
            *([_idempotency_key(route)] if route.method == "POST" else []),
        ],
        "responses": {str(route.status): success, **_failures(route, failure)},
    }
    if route.body is not None:
        # NOTE: without the `raw_media_type`: openapi-python-client refuses any but JSON. The body's description has it.
        operation["requestBody"] = {
            "required": True,
            "content": {JSON: {"schema": _body(route.body, route.body_fields)}},
        }
        if "body" in example:
            operation["requestBody"]["content"][JSON]["example"] = example["body"]
    return operation | {"x-codeSamples": samples(route.path, route.method, operation)}


def _success_headers(route: Route) -> Iterator[str]:
    yield "X-Request-Id"
    if route.access == "api key":
        yield from _RATE_HEADERS
    if route.runs_once:
        yield idempotency.REPLAYED
    if route.access != "open" and route.method == "GET" and JSON in route.media_types:
        yield "ETag"
        if any(field.name in ("offset", "after") for field in route.fields):
            yield "Link"
    yield from route.headers


def _headers(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _errors() -> Iterator[Json]:
    """Every code with its causes and remedies, and an example if there is one."""
    for documented in error_reference.documented():
        entry = {
            "code": documented.code,
            "status": documented.status,
            "causes": list(dict.fromkeys(documented.causes)),
            "remedies": list(dict.fromkeys(documented.remedies)),
        }
        recorded = _ANSWERS["errors"].get(documented.code)
        example = recorded and {"request": recorded["request"], "error": recorded["answer"]["error"]}
        yield entry | ({"example": example} if example else {})


def _tag(route: Route) -> str:
    module = route.handler.__module__.rpartition(".")[2]
    assert module in _TAGS, f"{route.name}: _TAGS lacks the module {module}"
    return _TAGS[module][0]


def _required_permission(route: Route) -> Iterator[str]:
    if route.access == "bootstrap":
        yield "Requires the bootstrap key."
    elif route.access not in ("open", "api key"):
        yield f"Requires the permission `{route.access}`."


def _parameter(field: Field, route: Route, values: Mapping[str, str]) -> Json:
    in_path = f"{{{field.name}}}" in route.path
    schema = dict(field.kind.schema)
    if not in_path:
        schema |= _default(field)
    example = {"example": values[field.name]} if in_path and field.name in values else {}
    return {
        "name": field.name,
        "in": "path" if in_path else "query",
        "required": field.required,
        "description": _PARAMETERS[field.name].replace("{sorted_by}", route.sorted_by),
        "schema": schema,
        **example,
    }


def _body(struct: type[msgspec.Struct], fields: Iterable[Field]) -> JsonSchema:
    properties: dict[str, JsonSchema] = {}
    for field in fields:
        # In a POST, null is the same as an absent field. In a PATCH, only fields that can be cleared accept null.
        may_be_null = field.nullable or not (field.required or field.keeps_if_absent)
        schema: JsonSchema = {"anyOf": [field.kind.schema, {"type": "null"}]} if may_be_null else field.kind.schema
        example = {"examples": [_FIELDS[field.name]]} if field.name in _FIELDS else {}
        meaning = {"description": _MEANINGS[field.name]} if field.name in _MEANINGS else {}
        properties[field.name] = schema | meaning | _default(field) | example
    return {
        "type": "object",
        "description": inspect.getdoc(struct),
        "properties": properties,
        "required": [field.name for field in fields if field.required],
    }


def _default(field: Field) -> Json:
    """The default of a field, unless it is an object: generators of clients refuse such defaults."""
    omitted = field.default in (None, msgspec.NODEFAULT, msgspec.UNSET) or isinstance(field.default, msgspec.Raw | dict)
    return {} if omitted else {"default": field.default}


def _failures(route: Route, failure: JsonSchema) -> Json:
    """Error responses by status, with their possible messages."""
    by_status: dict[int, list[Refusal]] = {}
    for refusal in refusals_of(route):
        by_status.setdefault(refusal.status, []).append(refusal)
    responses: Json = {}
    for status, refusals in sorted(by_status.items()):
        codes = {refusal.message: refusal.code for refusal in refusals}
        content: Json = {
            "schema": failure,
            "examples": {
                f"{number}": {"summary": f"{code}: {text}", "value": {"success": False, "error": text}}
                for number, (text, code) in enumerate(codes.items(), 1)
            },
        }
        names = ["X-Request-Id", "Error-Code"]
        if route.access == "api key" and status not in (401, 403):
            names += _RATE_HEADERS
        if any("Retry-After" in refusal.headers for refusal in refusals) or status == HTTPStatus.TOO_MANY_REQUESTS:
            names.append("Retry-After")
        if any(errors.FITTING_LIMIT in refusal.headers for refusal in refusals):
            names.append(errors.FITTING_LIMIT)
        if any(idempotency.REPLAYED in refusal.headers for refusal in refusals):
            names.append(idempotency.REPLAYED)
        responses[str(status)] = {
            "description": HTTPStatus(status).phrase,
            "headers": _headers(*names),
            "content": {JSON: content},
        }
    return responses


def refusals_of(route: Route) -> Iterator[Refusal]:
    """Every refusal of an operation: of the caller, the parameters, the body, the handler and the service."""
    yield errors.malformed_request()
    yield errors.not_found()
    if route.access == "api key":
        yield from (errors.missing_api_key(), errors.invalid_api_key(), errors.expired_api_key())
        yield from (errors.inactive_account(), errors.ip_address_not_allowed())
        if shape.covers(route.path):
            yield network_mismatch()
        if route.scope:
            yield from (errors.scope_not_covered(route.scope), errors.network_not_available())
            if not issubclass(route.ask, EventsAsk):
                yield errors.chain_split()
            yield errors.too_many_concurrent_requests("requests")
        yield from (errors.rate_limit_exceeded(), errors.quota_exceeded(), errors.usage_not_recorded())
    elif route.access != "open":
        yield from (errors.missing_admin_key(), errors.invalid_admin_key(), errors.permission_denied(route.access))
        yield from (errors.too_many_concurrent_requests("admin requests"), errors.upgrade_in_progress())
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
    if route.method == "POST":
        yield errors.invalid_idempotency_key()
    if route.runs_once:
        yield errors.idempotency_key_reused()
    if route.ask in (ChainChange, EventsAsk):
        yield errors.upgrade_in_progress()
    if route.runs_once and route.ask is not ChainChange:
        issues_a_key = issubclass(get_args(route.answer)[0], answers.Issued)
        yield errors.key_not_shown_again(_ISSUED_TO) if issues_a_key else errors.answer_erased()
    yield errors.body_too_large()
    yield errors.internal_error()
    yield from (errors.database_not_available(), errors.too_slow())


def _component(schema: Json, enums: Mapping[str, Json]) -> Json:
    """The schema of an answer, as clients see it.

    Fields with a default are always present; only fields that may be unset are optional. Indented docstrings would
    be shown as code. Values of `enums` stand in the field, so that clients need no type of that name.
    """
    if "description" in schema:
        schema = schema | {"description": inspect.cleandoc(schema["description"])}
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return schema
    required = {*schema.get("required", ()), *(name for name, field in properties.items() if "default" in field)}
    shown = {
        name: enums.get(field.get("$ref", ""), {key: value for key, value in field.items() if key != "default"})
        for name, field in properties.items()
    }
    return schema | {"properties": shown, "required": [name for name in shown if name in required]}


def _plain_names(described: Json) -> Json:
    """Rename generic components to plain names: `api.answers.ChainPage[Holder, MorePaging]` is `HolderPage`."""
    text = msgspec.json.encode(described).decode()
    names = {name: _plain_name(name) for name in described["components"]["schemas"]}
    twice = [name for name, count in Counter(names.values()).items() if count > 1]
    assert not twice, f"components with the same name: {twice}"
    for name, plain in names.items():
        text = text.replace(f'"{name}":', f'"{plain}":').replace(f'/{name}"', f'/{plain}"')
    renamed: Json = msgspec.json.decode(text)
    return renamed


def _plain_name(name: str) -> str:
    """The name of a schema: its content's, then its envelope's, such as `HolderPage`."""
    parts: list[str] = re.findall(r"[^\W_]+", re.sub(r"(?:\w+\.)+", "", name))
    envelope, *content = parts
    if not content:
        return envelope
    return content[0] + next(kind for kind in ("Answer", "Page", "Bulk", "Confirmation") if envelope.endswith(kind))


def _origin(answer: Any) -> type:
    origin: type = getattr(answer, "__origin__", answer)
    return origin
