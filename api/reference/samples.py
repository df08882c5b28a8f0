"""Samples for /docs that call an operation: with curl, and with the clients in Python and TypeScript.

The names here are those of the clients, which `python -m clients.generate` writes from the same document.
"""

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

URL = "http://127.0.0.1:8080"
"""The service in samples: an API with default settings. /docs shows its own address instead."""

_JSON = "application/json"
_OWNERS = {
    "users": "user_id",
    "credentials": "credential_id",
    "usage": "credential_id",
    "admin-keys": "admin_key_id",
    "subscriptions": "subscription_id",
}
_RENAMED = {
    "hash": "tx_hash",  # this and the next would hide a builtin
    "format": "file_format",
    "from": "from_time",  # a keyword
    "to": "to_time",
}
_KEYS = {"apiKey": ("api_key", "API_KEY"), "adminKey": ("admin_key", "ADMIN_KEY")}


def samples(path: str, method: str, operation: Json) -> list[Json]:
    """The extension `x-codeSamples` of an operation: three programs, runnable once keys and `<…>` are filled in."""
    return [
        {"lang": "Shell", "label": "curl", "source": "\n".join(_curl(path, method, operation))},
        {"lang": "Python", "label": "Python", "source": "\n".join(_python(path, operation))},
        {"lang": "TypeScript", "label": "TypeScript", "source": "\n".join(_typescript(path, operation))},
    ]


def snake_case(name: str, path: str = "") -> str:
    """The name of a parameter in Python: `fromSlot` is `from_slot`, the `id` in /users/{id} is `user_id`."""
    if name == "id":
        return _OWNERS[path.partition("/{id}")[0].rpartition("/")[2]]
    snake = re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower()
    return _RENAMED.get(snake, snake)


def camel_case(name: str) -> str:
    """The name of an operation or of an argument in TypeScript: `list_users` is `listUsers`."""
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def key_of(operation: Json) -> str:
    """The security scheme of the key that an operation needs, "" if it needs none."""
    return next(iter(next(iter(operation["security"]), {})), "")


def answer_of(operation: Json) -> Json | None:
    """The schema of a successful answer, None if it is not JSON."""
    success = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
    schema: Json | None = success["content"].get(_JSON, {}).get("schema")
    return schema


def body_of(operation: Json) -> Json | None:
    """The schema of the body, None if there is none."""
    schema: Json | None = operation.get("requestBody", {}).get("content", {}).get(_JSON, {}).get("schema")
    return schema


def _curl(path: str, method: str, operation: Json) -> Iterator[str]:
    for name, value in _path_values(path, operation).items():
        path = path.replace(f"{{{name}}}", str(value))
    curl = "curl -sN" if is_event_stream(operation) else "curl -s"
    lines = [f'{curl} "{URL}{path}"' if method in ("GET", "POST") else f'curl -s -X {method} "{URL}{path}"']
    if key := key_of(operation):
        lines.append(f'  -H "Authorization: Bearer ${_KEYS[key][1]}"')
    body = _body_values(operation)
    if body is not None:
        lines.append(f"  -d {shlex.quote(json.dumps(body))}")
    elif method == "POST":
        lines[0] = lines[0].replace("curl -s", "curl -s -X POST")
    yield " \\\n".join(lines)


def _python(path: str, operation: Json) -> Iterator[str]:
    argument = ""
    if key := key_of(operation):
        yield from ("import os", "")
        argument = f', {_KEYS[key][0]}=os.environ["{_KEYS[key][1]}"]'
    yield from ("from ledgerline_client import Ledgerline", "", f'with Ledgerline("{URL}"{argument}) as service:')
    arguments = [json.dumps(value) for value in _path_values(path, operation).values()]
    arguments += [f"{snake_case(name)}={json.dumps(value)}" for name, value in (_body_values(operation) or {}).items()]
    name = operation["operationId"]
    if is_download(operation):
        yield f'    with open("{_file_name(name)}", "w", encoding="utf-8", newline="") as file:'
        yield f"        file.writelines(service.{stream_name(name)}({', '.join(arguments)}))"
        return
    if is_event_stream(operation):
        yield f"    for event in service.subscribe({', '.join(arguments)}):"
        yield '        print(event["number"], event["action"], event["object"])'
        return
    yield f"    answer = service.{name}({', '.join(arguments)})"
    shown = _shown(operation, 'answer["data"]')
    yield f"    print({shown})"
    if _is_list(operation):
        yield f"    # service.{iterator_name(name)}(…) reads every page."


def _typescript(path: str, operation: Json) -> Iterator[str]:
    if is_download(operation):
        yield from ('import { createWriteStream } from "node:fs";', 'import { pipeline } from "node:stream/promises";')
    yield from ('import { Ledgerline } from "ledgerline-client";', "")
    argument = ""
    if key := key_of(operation):
        argument = f", {{ {camel_case(_KEYS[key][0])}: process.env.{_KEYS[key][1]} }}"
    yield f'const service = new Ledgerline("{URL}"{argument});'
    arguments = [json.dumps(value) for value in _path_values(path, operation).values()]
    if body := _body_values(operation):
        arguments.append(_object(body))
    name = camel_case(operation["operationId"])
    if is_download(operation):
        lines = f"service.{camel_case(stream_name(operation['operationId']))}({', '.join(arguments)})"
        yield f'await pipeline({lines}, createWriteStream("{_file_name(operation["operationId"])}"));'
        return
    if is_event_stream(operation):
        yield f"for await (const event of service.subscribe({', '.join(arguments)})) {{"
        yield from ("  console.log(event.number, event.action, event.object);", "}")
        return
    yield f"const answer = await service.{name}({', '.join(arguments)});"
    yield f"console.log({_shown(operation, 'answer.data')});"
    if _is_list(operation):
        yield f"// service.{camel_case(iterator_name(operation['operationId']))}(…) reads every page."


def iterator_name(operation_id: str) -> str:
    """The name of the method that reads a list page by page."""
    return operation_id.replace("list_", "iterate_", 1)


def stream_name(operation_id: str) -> str:
    """The name of the method that reads a download line by line."""
    return operation_id.replace("export_", "stream_", 1)


def is_download(operation: Json) -> bool:
    """Whether the answer is a stream of lines, of any length."""
    name: str = operation["operationId"]
    return name.startswith("export_")


def is_event_stream(operation: Json) -> bool:
    """Whether the answer is a stream of events without end, which the method `subscribe` of the clients reads."""
    return any("text/event-stream" in answer.get("content", {}) for answer in operation["responses"].values())


def _path_values(path: str, operation: Json) -> dict[str, str | int]:
    """Path parameters with an example from the chain if there is one, otherwise with `<…>` or 0 to fill in."""
    in_path = (parameter for parameter in operation["parameters"] if parameter["in"] == "path")
    return {
        parameter["name"]: int(parameter.get("example", 0))
        if parameter["schema"].get("type") == "integer"
        else parameter.get("example", f"<{snake_case(parameter['name'], path)}>")
        for parameter in in_path
    }


def _body_values(operation: Json) -> Json | None:
    """The required fields of the body or, if there are none, the first one. None without a body."""
    schema = body_of(operation)
    if schema is None:
        return None
    names = schema["required"] or [next(iter(schema["properties"]))]
    return {name: _body_value(name, schema["properties"][name]) for name in names}


def _body_value(name: str, schema: Json) -> object:
    """The first example of a field, otherwise `<…>` or 0 to fill in, of the type that the field has."""
    value = schema.get("examples", [0 if schema.get("type") == "integer" else f"<{name}>"])[0]
    return [value] if schema.get("type") == "array" and not isinstance(value, list) else value


def _is_list(operation: Json) -> bool:
    name: str = operation["operationId"]
    return name.startswith("list_")


def _file_name(operation_id: str) -> str:
    return f"{operation_id.removeprefix('export_')}.csv"


def _shown(operation: Json, data: str) -> str:
    return data if "$ref" in (answer_of(operation) or {}) else "answer"


def _object(fields: Json) -> str:
    """A literal in TypeScript."""
    return f"{{ {', '.join(f'{name}: {json.dumps(value)}' for name, value in fields.items())} }}"
