"""What scripts of other origins may read."""

from api.reference.openapi import document
from api.routes import ROUTES
from api.server import cors


def test_scripts_may_read_every_documented_header() -> None:
    exposed = set(cors.EXPOSED["Access-Control-Expose-Headers"].split(", "))
    described = document(ROUTES, {})["paths"]
    documented = {
        header
        for path, methods in described.items()
        if cors.is_shared(path)
        for operation in methods.values()
        for answer in operation["responses"].values()
        for header in answer.get("headers", {})
    }
    assert documented
    assert documented <= exposed
