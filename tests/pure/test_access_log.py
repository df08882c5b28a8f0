"""Lines of the access log."""

import pytest

from api.server import access_log
from api.server.access_log import AccessLog
from api.server.request_facts import RequestFacts
from shared import settings


def test_lines_are_whole_in_every_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    class Pipe:
        def write(self, text: str) -> None:
            written.append(text)

        def flush(self) -> None:
            pass

    monkeypatch.setattr("sys.stderr", Pipe())
    monkeypatch.setattr(access_log, "is_json", lambda _form: True)
    log = AccessLog(settings.read({"LOG_FORMAT": "json"}))
    for number in range(100):
        log.note(RequestFacts(0.0, "GET", None, str(number) * 40, None), 200, 0, 0.001)
    log.flush()
    assert len("".join(written).splitlines()) == 100
    assert 1 < len(written) < 50
    assert all(text.endswith("\n") and len(text) <= 4_096 for text in written)
