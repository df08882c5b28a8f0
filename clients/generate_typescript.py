"""The TypeScript client's types and methods, as text that the table of routes determines.

How a request is sent, retried and paged is written by hand, in `typescript/src/http.ts`.
"""

import json
from collections.abc import Iterable, Iterator
from textwrap import indent, wrap
from typing import Any

from api.samples import camel_case, iterator_name, snake_case, stream_name
from clients.operations import Field, Operation, is_quantity, operations

Json = dict[str, Any]
NOTE = "Made by `python -m clients.generate` from the table of routes; do not edit."

_SCALARS = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
_WIDTH = 110


def files(described: Json) -> dict[str, str]:
    """The text of each generated file, by its name."""
    every = list(operations(described))
    return {
        "types.ts": "\n".join(_types(described["components"]["schemas"])),
        "operations.ts": "\n".join(_table(every)),
        "client.ts": "\n".join(_client(every)),
    }


def _types(schemas: dict[str, Json]) -> Iterator[str]:
    yield from (f"// The objects of answers. {NOTE}", "")
    for name, schema in schemas.items():
        yield _comment(schema.get("description", name))
        yield f"export interface {name} {{"
        for field, of in schema["properties"].items():
            optional = "" if field in schema.get("required", ()) else "?"
            yield f"  {field}{optional}: {_type(of, '')};"
        yield from ("}", "")


def _type(schema: Json, module: str) -> str:
    """The TypeScript type of a JSON schema; types of answers are in `module`."""
    if "$ref" in schema:
        return f"{module}{schema['$ref'].rpartition('/')[2]}"
    if "const" in schema:
        return json.dumps(schema["const"])
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    if is_quantity(schema):
        return "bigint"
    if schema.get("type") == "array":
        return f"Array<{_type(schema.get('items', {}), module)}>"
    if schema.get("type") == "object" and "properties" in schema:
        return f"{{ {'; '.join(f'{name}: {_type(of, module)}' for name, of in schema['properties'].items())} }}"
    if schema.get("type") == "object":
        return f"Record<string, {_type(schema.get('additionalProperties') or {}, module)}>"
    if "type" in schema:
        return _SCALARS[schema["type"]]
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(_type(part, module) for part in schema["anyOf"]))
    return "unknown"


def _table(every: list[Operation]) -> Iterator[str]:
    yield f"// The table of operations. {NOTE}"
    yield from ("", 'import type { Operation } from "./http.js";', "")
    for each in every:
        yield f"export const {camel_case(each.name)}: Operation = {{"
        yield from (f"  {name}: {_literal(value)}," for name, value in _described(each).items())
        yield from ("};", "")


def _described(operation: Operation) -> Json:
    """What `http.ts` needs to know about an operation."""
    described: Json = {"method": operation.method, "path": operation.path, "key": operation.key or "none"}
    if operation.idempotent:
        described["idempotent"] = True
    if operation.answer is None:
        described["answer"] = "text"
    if operation.quantities:
        described["quantities"] = operation.quantities
    if operation.listed is not None and operation.listed.inside:
        described["inside"] = operation.listed.inside
    return described


def _literal(value: object) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name}: {_literal(each)}' for name, each in value.items())} }}"
    return json.dumps(value)


def _client(every: list[Operation]) -> Iterator[str]:
    yield f"// The client: one method for each operation. {NOTE}"
    yield ""
    yield 'import { type CallOptions, Http } from "./http.js";'
    yield 'import * as operations from "./operations.js";'
    yield 'import type * as types from "./types.js";'
    yield ""
    for each in every:
        if _fields(each):
            yield from _options(each)
    yield _comment('A Ledgerline service: `new Ledgerline(url, { apiKey: "…", adminKey: "…" })`.')
    yield "export class Ledgerline extends Http {"
    for number, each in enumerate(every):
        yield from [""] if number else []
        yield indent("\n".join(_method(each)), "  ")
        if each.listed is not None:
            yield ""
            yield indent("\n".join(_iterator(each, each.listed.item)), "  ")
        if each.download:
            yield ""
            yield indent("\n".join(_stream(each)), "  ")
    yield from ("}", "")


def _fields(operation: Operation) -> list[Field]:
    """The fields of the query or of the body; no operation has both."""
    assert operation.body is None or not operation.in_query, operation.name
    return operation.in_query if operation.body is None else operation.body


def _options(operation: Operation) -> Iterator[str]:
    """The type of an operation's options."""
    yield _comment(f"Options of `{camel_case(operation.name)}`.")
    yield f"export type {_options_name(operation)} = {{"
    for field in _fields(operation):
        if field.description:
            yield indent(_comment(field.description), "  ")
        kind = _type(field.schema, "types.")
        yield f"  {field.name}: {kind};" if field.required else f"  {field.name}?: {kind} | undefined;"
    yield from ("};", "")


def _options_name(operation: Operation) -> str:
    name = camel_case(operation.name)
    return f"{name[0].upper()}{name[1:]}Options"


def _method(operation: Operation) -> Iterator[str]:
    answer = "string" if operation.answer is None else _type(operation.answer, "types.")
    yield _comment(f"{operation.summary}.\n\n{operation.description}".strip())
    options = _options_name(operation) if _fields(operation) else None
    yield _signature(camel_case(operation.name), _arguments(operation, options), f"Promise<{answer}>")
    yield f"  return this.call({_call(operation)});"
    yield "}"


def _iterator(operation: Operation, item: str) -> Iterator[str]:
    """The method that reads a list page by page."""
    yield _comment(f"Every item of `{camel_case(operation.name)}`, page by page.")
    arguments = _arguments(operation, f'Omit<{_options_name(operation)}, "offset">')
    yield _signature(
        camel_case(iterator_name(operation.name)), arguments, f"AsyncGenerator<types.{item}, void, undefined>"
    )
    yield f"  return this.pages({_call(operation)});"
    yield "}"


def _stream(operation: Operation) -> Iterator[str]:
    """The method that reads a download line by line."""
    yield _comment(f"The lines of `{camel_case(operation.name)}` as they arrive, each with its line end.")
    arguments = _arguments(operation, _options_name(operation) if _fields(operation) else None)
    yield _signature(camel_case(stream_name(operation.name)), arguments, "AsyncGenerator<string, void, undefined>")
    yield f"  return this.lines({_call(operation)});"
    yield "}"


def _signature(name: str, arguments: list[str], answer: str) -> str:
    line = f"{name}({', '.join(arguments)}): {answer} {{"
    if len(line) < _WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"  {each}," for each in arguments), f"): {answer} {{"])


def _arguments(operation: Operation, options: str | None) -> list[str]:
    found = [f"{_argument(field, operation.path)}: {_type(field.schema, 'types.')}" for field in operation.in_path]
    if options is not None:
        found.append(f"options: {options}{_default(_fields(operation))}")
    return [*found, "call: CallOptions = {}"]


def _default(fields: Iterable[Field]) -> str:
    return "" if any(field.required for field in fields) else " = {}"


def _call(operation: Operation) -> str:
    """The arguments of `Http.call`, `Http.pages` and `Http.lines`."""
    arguments = [(field.name, _argument(field, operation.path)) for field in operation.in_path]
    in_path = ", ".join(name if name == argument else f"{name}: {argument}" for name, argument in arguments)
    fields = "options" if _fields(operation) else "{}"
    return f"operations.{camel_case(operation.name)}, {f'{{ {in_path} }}' if in_path else '{}'}, {fields}, call"


def _argument(field: Field, path: str) -> str:
    return camel_case(snake_case(field.name, path))


def _comment(text: str) -> str:
    paragraphs = ["\n".join(wrap(" ".join(each.split()), _WIDTH)) for each in text.replace("*/", "* /").split("\n\n")]
    whole = "\n\n".join(each for each in paragraphs if each)
    if "\n" not in whole:
        return f"/** {whole} */"
    return "\n".join(["/**", *(f" * {line}".rstrip() for line in whole.split("\n")), " */"])
