"""Every operation and every error has an example in /openapi.json, and none has a valid key."""

import re
from typing import Any

import msgspec
import pytest

from api.reference import error_reference
from api.reference.openapi import document
from api.routes import ROUTES
from tests.api.asking import FILE, RECORD_AGAIN

Json = dict[str, Any]
OUTSIDE_OF_OPERATIONS = {"method_not_allowed"}


@pytest.fixture(scope="module")
def examples() -> Json:
    told: Json = msgspec.json.decode(FILE.read_bytes())
    return told


def test_every_operation_and_every_error_has_an_example(examples: Json) -> None:
    assert examples["operations"].keys() == {route.operation for route in ROUTES}, RECORD_AGAIN
    assert examples["errors"].keys() == {each.code for each in error_reference.documented()}, RECORD_AGAIN


def test_the_document_shows_the_examples(examples: Json) -> None:
    described: Json = msgspec.json.decode(msgspec.json.encode(document(ROUTES, {})))
    operations = {each["operationId"]: each for methods in described["paths"].values() for each in methods.values()}
    for name, operation in operations.items():
        example = examples["operations"][name]
        success = operation["responses"][str(example["status"])]["content"]
        shown = [content["example"] for content in success.values() if "example" in content]
        assert shown == [example["answer"]], name
        if "body" in example:
            assert operation["requestBody"]["content"]["application/json"]["example"] == example["body"]
    for code, example in examples["errors"].items():
        listed = {"request": example["request"], "error": example["answer"]["error"]}
        assert [each["example"] for each in described["x-errors"] if each["code"] == code] == [listed]
        if code in OUTSIDE_OF_OPERATIONS:
            continue
        failures = operations[example["operation"]]["responses"][str(example["status"])]["content"]
        told = [each["summary"].partition(":")[0] for each in failures["application/json"]["examples"].values()]
        assert code in told, f"{example['operation']} does not document {code}"


def test_no_example_has_a_key_that_was_valid() -> None:
    found = re.findall(r"iiak_(?:admin_)?([0-9a-f]{20,})", FILE.read_text())
    assert len(found) > 2
    assert {key[:20] for key in found} <= {"0123456789abcdef0123", "01234567890123456789"}
