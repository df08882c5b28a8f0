"""The Python client's types and methods, as text that the table of routes determines.

How a request is sent, retried and paged is written by hand, in `ledgerline_client/http.py`.
"""

import re
from collections.abc import Iterator
from textwrap import indent, wrap
from typing import Any

Json = dict[str, Any]
NOTE = "Made by `python -m clients.generate` from the table of routes; do not edit."

_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
_JSON = "application/json"
_WIDTH = 110
_OWNERS = {"users": "user_id", "credentials": "credential_id", "usage": "credential_id", "admin-keys": "admin_key_id"}
_RENAMED = {
    "hash": "tx_hash",  # this and the next would hide a builtin
    "format": "file_format",
    "from": "from_time",  # a keyword
    "to": "to_time",
}


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
        f"from ledgerline_client.http import {base}",
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
    in_path = [each for each in operation["parameters"] if each["in"] == "path"]
    in_query = [each for each in operation["parameters"] if each["in"] == "query"]
    body = operation.get("requestBody", {}).get("content", {}).get(_JSON, {}).get("schema")
    for each in in_path:
        each["python_name"] = _python_name(each["name"], path)
    arguments = [f"{each['python_name']}: {_hint(each['schema'], 'types.')}" for each in in_path]
    options = _options(in_query)
    if body is not None:
        options += [_option(name, schema, name in body["required"]) for name, schema in body["properties"].items()]
    signature = _signature(arguments, options)
    sent = [
        f'"{method}"',
        f'"{path}"',
        _values(in_path),
        _values(in_query),
        "None" if body is None else _values([{"name": name} for name in body["properties"]]),
    ]
    who = _key(operation)
    call = f'self.call({", ".join(sent)}, key="{who}", json={_JSON in content})'
    prefix, awaiting = ("async def", "await ") if asynchronous else ("def", "")
    yield f"    {prefix} {operation['operationId']}({signature}) -> {answer}:"
    yield from _docstring(f"{operation['summary']}.\n\n{operation['description']}".strip(), 8)
    yield f"        answer: {answer} = {awaiting}{call}"
    yield "        return answer"
    item = _item(content[_JSON]["schema"], schemas) if _JSON in content else None
    if item is not None:
        yield from _iterator(path, operation["operationId"], item, arguments, in_path, in_query, who, asynchronous)


def _iterator(
    path: str,
    operation_id: str,
    item: str,
    arguments: list[str],
    in_path: list[Json],
    in_query: list[Json],
    who: str,
    asynchronous: bool,
) -> Iterator[str]:
    """The method that reads a list page by page."""
    wanted = [each for each in in_query if each["name"] not in ("offset",)]
    options = _options(wanted)
    signature = _signature(arguments, options)
    hint = f"{'AsyncIterator' if asynchronous else 'Iterator'}[types.{item}]"
    yield ""
    yield f"    def {operation_id.replace('list_', 'iterate_', 1)}({signature}) -> {hint}:"
    yield from _docstring(f"Every item of `{operation_id}`, page by page.", 8)
    yield f'        return self.pages("{path}", {_values(in_path)}, {_values(wanted)}, key="{who}")'


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


def _item(schema: Json, schemas: dict[str, Json]) -> str | None:
    """The type of the items of a list, None for other answers and for lists inside an object."""
    properties = schemas[schema["$ref"].rpartition("/")[2]]["properties"] if "$ref" in schema else {}
    if "pagination" not in properties or properties["data"].get("type") != "array":
        return None
    item: str = properties["data"]["items"]["$ref"].rpartition("/")[2]
    return item


def _options(parameters: list[Json]) -> list[str]:
    return [_option(each["name"], each["schema"], each["required"]) for each in parameters]


def _option(name: str, schema: Json, required: bool) -> str:
    hint = _hint(schema, "types.")
    if required:
        return f"{_python_name(name)}: {hint}"
    return f"{_python_name(name)}: {hint}{'' if hint.endswith('None') else ' | None'} = None"


def _values(fields: list[Json]) -> str:
    names = ((each["name"], each.get("python_name") or _python_name(each["name"])) for each in fields)
    return "{" + ", ".join(f'"{name}": {argument}' for name, argument in names) + "}"


def _python_name(name: str, path: str = "") -> str:
    """A parameter's name in Python: `fromSlot` is `from_slot`, the `id` in /users/{id} `user_id`."""
    if name == "id":
        return _OWNERS[path.partition("/{id}")[0].rpartition("/")[2]]
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
    return _RENAMED.get(snake, snake)


def _docstring(text: str, spaces: int) -> list[str]:
    paragraphs = ["\n".join(wrap(" ".join(each.split()), _WIDTH - spaces)) for each in text.split("\n\n")]
    whole = "\n\n".join(each for each in paragraphs if each)
    shown = f'"""{whole}"""' if "\n" not in whole else f'"""{whole}\n"""'
    return indent(shown, " " * spaces).split("\n")
