"""The Python client's types and methods, as text that the table of routes determines.

How a request is sent, retried and paged is written by hand, in `ledgerline_client/http.py`.
"""

from collections.abc import Iterator
from textwrap import indent, wrap
from typing import Any

from api.samples import is_download, iterator_name, snake_case, stream_name
from clients.operations import Listed, listed, takes_idempotency_key

Json = dict[str, Any]
NOTE = "Made by `python -m clients.generate` from the table of routes; do not edit."

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_JSON = "application/json"
_WIDTH = 110


def files(described: Json) -> dict[str, str]:
    """The text of each generated file, by its name."""
    return {
        "types.py": _types(described["components"]["schemas"]),
        "client.py": _client(described, asynchronous=False),
        "async_client.py": _client(described, asynchronous=True),
    }


def _types(schemas: dict[str, Json]) -> str:
    lines = [f'"""The objects of answers.\n\n{NOTE}\n"""', "", "from __future__ import annotations", ""]
    lines += ["from typing import Any, Literal, NotRequired, TypedDict", ""]
    for name, schema in schemas.items():
        lines += ["", f"class {name}(TypedDict):", *_docstring(schema.get("description", name), 4)]
        required = schema.get("required", ())
        lines += [""] if schema["properties"] else []
        for field, of in schema["properties"].items():
            hint = _hint(of, "")
            lines.append(f"    {field}: {hint if field in required else f'NotRequired[{hint}]'}")
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _hint(schema: Json, module: str) -> str:
    """The Python type of a JSON schema; types of this package are in `module`."""
    if "$ref" in schema:
        return f"{module}{schema['$ref'].rpartition('/')[2]}"
    if "const" in schema:
        return f"Literal[{schema['const']!r}]"
    if "enum" in schema:
        return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]"
    if schema.get("type") == "array":
        return f"list[{_hint(schema.get('items', {}), module)}]"
    if schema.get("type") == "object":
        return f"dict[str, {_hint(schema.get('additionalProperties') or {}, module)}]"
    if "type" in schema:
        return _SCALARS[schema["type"]]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_hint(part, module) for part in schema["anyOf"]))
    return "Any"


def _client(described: Json, *, asynchronous: bool) -> str:
    kind, base = ("AsyncLedgerline", "AsyncHttp") if asynchronous else ("Ledgerline", "Http")
    words = "asynchronous" if asynchronous else "synchronous"
    iterator = "AsyncIterator" if asynchronous else "Iterator"
    lines = [
        f'"""The {words} client: one method for each operation.\n\n{NOTE}\n"""',
        "",
        f"from collections.abc import {iterator}",
        "from typing import Any, Literal",
        "",
        "from ledgerline_client import types",
        f"from ledgerline_client.http import UNSET, {base}, Unset, new_idempotency_key",
        "",
        "",
        f"class {kind}({base}):",
        f'    """A Ledgerline service. `with {kind}(url, api_key=..., admin_key=...) as service`."""',
    ]
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            lines += ["", *_method(path, method.upper(), operation, described["components"]["schemas"], asynchronous)]
    return "\n".join(lines) + "\n"


def _method(path: str, method: str, operation: Json, schemas: dict[str, Json], asynchronous: bool) -> Iterator[str]:
    content = _content(operation)
    answer = _hint(content[_JSON]["schema"], "types.") if _JSON in content else "str"
    in_path, in_query = _parameters(operation, "path"), _parameters(operation, "query")
    body = operation.get("requestBody", {}).get("content", {}).get(_JSON, {}).get("schema")
    for each in in_path:
        each["python_name"] = snake_case(each["name"], path)
    arguments = [f"{each['python_name']}: {_hint(each['schema'], 'types.')}" for each in in_path]
    fields: Json = {} if body is None else body["properties"]
    options = _options(in_query) + [_body_option(name, of, name in body["required"]) for name, of in fields.items()]
    once = ""
    if takes_idempotency_key(operation):
        options.append("idempotency_key: str | None = None")
        once = ", idempotency_key=idempotency_key or new_idempotency_key()"
    signature = _signature(arguments, options)
    in_body = "None" if body is None else _values([{"name": name} for name in fields])
    sent = [f'"{method}"', f'"{path}"', _values(in_path), _values(in_query), in_body]
    key = _key(operation)
    call = f'self.call({", ".join(sent)}, key="{key}", json={_JSON in content}{once})'
    prefix, awaiting = ("async def", "await ") if asynchronous else ("def", "")
    yield f"    {prefix} {operation['operationId']}({signature}) -> {answer}:"
    yield from _docstring(f"{operation['summary']}.\n\n{operation['description']}".strip(), 8)
    yield f"        answer: {answer} = {awaiting}{call}"
    yield "        return answer"
    paged = listed(content[_JSON]["schema"], schemas) if _JSON in content else None
    if paged is not None:
        yield from _iterator(path, operation["operationId"], paged, arguments, in_path, in_query, key, asynchronous)
    if is_download(operation):
        yield ""
        lines = f"{'AsyncIterator' if asynchronous else 'Iterator'}[str]"
        yield f"    def {stream_name(operation['operationId'])}({signature}) -> {lines}:"
        yield from _docstring(f"The lines of `{operation['operationId']}` as they arrive, each with its line end.", 8)
        yield f'        return self.lines("{path}", {_values(in_path)}, {_values(in_query)}, key="{key}")'


def _parameters(operation: Json, place: str) -> list[Json]:
    """The parameters in the path or in the query."""
    return [each for each in operation["parameters"] if each["in"] == place]


def _iterator(
    path: str,
    operation_id: str,
    paged: Listed,
    arguments: list[str],
    in_path: list[Json],
    in_query: list[Json],
    key: str,
    asynchronous: bool,
) -> Iterator[str]:
    """The method that reads a list page by page."""
    wanted = [each for each in in_query if each["name"] not in ("offset",)]
    options = _options(wanted)
    signature = _signature(arguments, options)
    hint = f"{'AsyncIterator' if asynchronous else 'Iterator'}[types.{paged.item}]"
    inside = f', inside="{paged.inside}"' if paged.inside else ""
    yield ""
    yield f"    def {iterator_name(operation_id)}({signature}) -> {hint}:"
    yield from _docstring(f"Every item of `{operation_id}`, page by page.", 8)
    yield f'        return self.pages("{path}", {_values(in_path)}, {_values(wanted)}, key="{key}"{inside})'


def _content(operation: Json) -> Json:
    """The body of a successful answer, by media type."""
    success = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    content: Json = success["content"]
    return content


def _signature(arguments: list[str], options: list[str]) -> str:
    return ", ".join(["self", *arguments, *(["*", *options] if options else [])])


def _key(operation: Json) -> str:
    """The kind of key that an operation needs."""
    scheme = next(iter(next(iter(operation["security"]), {})), "")
    return {"apiKey": "api_key", "adminKey": "admin_key"}.get(scheme, "none")


def _options(parameters: list[Json]) -> list[str]:
    return [_option(each["name"], each["schema"], each["required"]) for each in parameters]


def _option(name: str, schema: Json, required: bool) -> str:
    hint = _hint(schema, "types.")
    if required:
        return f"{snake_case(name)}: {hint}"
    return f"{snake_case(name)}: {hint}{'' if hint.endswith('None') else ' | None'} = None"


def _body_option(name: str, schema: Json, required: bool) -> str:
    hint = _hint(schema, "types.")
    if required:
        return f"{name}: {hint}"
    known = hint.removesuffix(" | None")
    return f"{name}: {known} | Unset{hint.removeprefix(known)} = UNSET"


def _values(fields: list[Json]) -> str:
    names = ((each["name"], each.get("python_name") or snake_case(each["name"])) for each in fields)
    return "{" + ", ".join(f'"{name}": {argument}' for name, argument in names) + "}"


def _docstring(text: str, spaces: int) -> list[str]:
    paragraphs = ["\n".join(wrap(" ".join(each.split()), _WIDTH - spaces)) for each in text.split("\n\n")]
    whole = "\n\n".join(each for each in paragraphs if each)
    shown = f'"""{whole}"""' if "\n" not in whole else f'"""{whole}\n"""'
    return indent(shown, " " * spaces).split("\n")
