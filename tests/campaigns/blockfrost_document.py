"""`python -m tests.campaigns.blockfrost_document openapi.yaml`: the facts of Blockfrost's document that the tests need.

The document is `openapi.yaml` of the package @blockfrost/openapi. The result, tests/vectors/blockfrost-openapi.json,
has for each path its methods, their query parameters, and the JSON Schema of the answer with status 200; texts and
examples are left out.
"""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

Json = dict[str, Any]

WRITTEN = Path(__file__).parents[1] / "vectors" / "blockfrost-openapi.json"
_METHODS = ("get", "post")
_LEFT_OUT = frozenset(("description", "example", "examples", "title", "deprecated", "nullable"))
_BY_NAME = ("properties", "schemas")
"""The members whose own members are named by the document."""


def main(document: Annotated[Path, typer.Argument(exists=True, dir_okay=False)]) -> None:
    """Write the facts anew."""
    WRITTEN.write_text(_shown(facts(yaml.safe_load(document.read_text()))))
    print(f"written: {WRITTEN}")


def facts(document: Json) -> Json:
    """The paths with their methods, and the schemas to which they refer."""
    paths = {
        path: {
            method.upper(): {"query": _query([*item.get("parameters", []), *item[method].get("parameters", [])])}
            | _answer(item[method]["responses"]["200"])
            for method in _METHODS
            if method in item
        }
        for path, item in document["paths"].items()
    }
    schemas = {name: _schema(each) for name, each in document["components"]["schemas"].items()}
    return {
        "version": document["info"]["version"],
        "paths": paths,
        "schemas": {name: schemas[name] for name in sorted(_named(paths, schemas))},
    }


def _named(said: Any, schemas: Json) -> set[str]:
    """The schemas to which a part of the document refers, also through others."""
    if isinstance(said, dict) and "$ref" in said:
        name = said["$ref"].removeprefix("#/schemas/")
        return {name} | _named(schemas[name], schemas)
    parts = said.values() if isinstance(said, dict) else said if isinstance(said, list) else ()
    return {name for part in parts for name in _named(part, schemas)}


def _query(parameters: list[Json]) -> list[str]:
    return [each["name"] for each in parameters if each["in"] == "query"]


def _answer(response: Json) -> Json:
    """The schema of a JSON answer; nothing for another media type."""
    content = response.get("content", {}).get("application/json")
    return {} if content is None else {"answer": _schema(content["schema"])}


def _schema(said: Any) -> Any:
    """A schema of OpenAPI 3.0 as JSON Schema, in which `nullable` is a type."""
    if isinstance(said, list):
        return [_schema(each) for each in said]
    if not isinstance(said, dict):
        return said
    if "$ref" in said:
        return {"$ref": said["$ref"].replace("#/components/", "#/")}
    shown = {
        name: {each: _schema(part) for each, part in value.items()} if name in _BY_NAME else _schema(value)
        for name, value in said.items()
        if name not in _LEFT_OUT
    }
    if said.get("nullable") and "type" in shown:
        shown["type"] = [shown["type"], "null"]
        if "enum" in shown:
            shown["enum"] = [*shown["enum"], None]
    elif said.get("nullable"):
        shown = {"anyOf": [shown, {"type": "null"}]}
    return shown


def _shown(facts: Json) -> str:
    """As JSON with a line for each path and each schema, so that a new version of the document is a short change."""
    parts = [
        f'"{part}": {{\n'
        + ",\n".join(f" {json.dumps(name)}: {json.dumps(each)}" for name, each in facts[part].items())
        + "\n}"
        for part in ("paths", "schemas")
    ]
    return "{\n" + ",\n".join([f'"version": {json.dumps(facts["version"])}', *parts]) + "\n}\n"


if __name__ == "__main__":
    typer.run(main)
