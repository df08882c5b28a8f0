"""The examples of /openapi.json are answers of the service: each is requested again."""

from typing import Any

import msgspec

from tests.api.asking import FILE, RECORD_AGAIN, ask_all

Json = dict[str, Any]


def shape(value: Any) -> Any:
    """The names and types in an answer, without its values."""
    if isinstance(value, dict):
        return {name: shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shape(each) for each in value]
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


async def test_the_service_still_answers_as_the_examples_say(environment: dict[str, str]) -> None:
    examples: Json = msgspec.json.decode(FILE.read_bytes())
    asked = await ask_all(environment)
    for operation, example in examples["operations"].items():
        now = asked["operations"][operation]
        assert (now["status"], shape(now["answer"])) == (example["status"], shape(example["answer"])), RECORD_AGAIN
        assert now["request"] == example["request"], RECORD_AGAIN
    assert asked["errors"] == examples["errors"], RECORD_AGAIN
