"""What holds for every route of the table."""

from api.parameters import JsonObject
from api.route import JSON
from api.routes import ROUTES
from tests.api.partners import NOWHERE

KEYED = [route for route in ROUTES if route.access != "open" and JSON in route.media_types]


def test_every_text_of_a_body_is_bounded() -> None:
    """Everything that is stored for a caller is bounded in size and depth."""
    for route in KEYED:
        for field in route.body_fields:
            schema = field.kind.schema
            bounded = schema.keys() & {"maxLength", "maximum", "format", "anyOf", "items", "enum", "properties"}
            assert bounded or isinstance(field.kind, JsonObject), (route.path, field.name)


def test_every_keyed_route_except_exports_and_streams_answers_json() -> None:
    others = {route.operation for route in ROUTES if route.access != "open"} - {route.operation for route in KEYED}
    assert all(operation.startswith(("export_", "stream_")) for operation in others)
    assert {route.media_types for route in KEYED} == {(JSON,)}
    assert all(NOWHERE not in route.path for route in KEYED)
