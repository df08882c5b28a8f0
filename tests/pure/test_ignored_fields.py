"""The header that names ignored fields."""

import pytest

from api.parameters import Field, fields_of
from api.routes import ROUTES
from api.server import ignored


@pytest.mark.parametrize("name", ["x", "y" * 100, "\U0001f600" * 100])
def test_the_header_for_ignored_fields_fits_into_the_buffer_of_a_proxy(name: str) -> None:
    names = [f"{number}{name}" for number in range(1_000)]
    shown = ignored.header(names, dict.fromkeys(names, "POST /v1/admin/users/{id}/suspend"))
    assert len(shown) <= 1_000 and shown.endswith("more")
    assert ignored.header(["a", "b"], {}) == '"a", "b"'


def test_the_endpoints_for_ignored_fields_exist() -> None:
    routes = {route.name: route for route in ROUTES}
    found = 0
    for route in ROUTES:
        known: set[str] = {field.name for field in route.body_fields}
        for name, endpoint in route.set_by.items():
            assert endpoint in routes, endpoint
            found += name not in known
    assert found > 8
    assert ignored.fields(fields_of(routes["GET /v1/admin/users"].question), ["limit", "x", "x"]) == ["x"]
    assert all(isinstance(field, Field) for field in routes["GET /v1/admin/users"].fields)
