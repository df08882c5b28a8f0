"""Log lines: one per event, in the configured format, also from libraries, and above a progress bar."""

import io
import json
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from api.server.access_log import AccessLog
from api.server.request_facts import RequestFacts
from shared import log, schema, settings
from shared.version import VERSION


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    """Restores the logging of other tests."""
    root, levels = logging.getLogger(), {name: logging.getLogger(name).level for name in log.LIBRARIES}
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    found = capsys.readouterr()
    assert found.out == "", "standard output belongs to answers"
    return [json.loads(line) for line in found.err.splitlines()]


def test_an_event_is_one_line_of_json_with_unchanged_values(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("info", "json")
    structlog.get_logger().info("store.appended", slot_no=2**63, text="ä\nb")
    [line] = lines(capsys)
    assert (line["event"], line["level"], line["slot_no"], line["text"]) == ("store.appended", "info", 2**63, "ä\nb")
    assert line["timestamp"].endswith("Z")


def test_a_library_logs_in_the_same_form_and_names_itself(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("info", "json")
    logging.getLogger("dramatiq.worker").warning("lost %s", "it")
    [line] = lines(capsys)
    assert (line["event"], line["level"], line["logger"]) == ("lost it", "warning", "dramatiq.worker")


def test_an_exception_is_in_the_same_line(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("info", "json")
    try:
        raise ValueError("why")
    except ValueError:
        structlog.get_logger().exception("it.failed")
        logging.getLogger("aiohttp.server").exception("it too")
    ours, theirs = lines(capsys)
    assert ours["exception"].endswith("ValueError: why")
    assert theirs["exception"].endswith("ValueError: why")


def test_the_level_applies_to_our_lines_and_to_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("warning", "json")
    structlog.get_logger().info("quiet")
    logging.getLogger("dramatiq").info("quiet")
    logging.getLogger("aiohttp.access").info("never, at any level")
    structlog.get_logger().warning("heard")
    assert [line["event"] for line in lines(capsys)] == ["heard"]


def test_a_line_of_a_request_has_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("info", "json")
    token = log.request_id.set("abc")
    structlog.get_logger().info("within")
    logging.getLogger("aiohttp.server").warning("within, of a library")
    log.request_id.reset(token)
    structlog.get_logger().info("after")
    assert [line.get("request_id") for line in lines(capsys)] == ["abc", "abc", None]


def test_the_first_line_names_program_and_versions(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("info", "json")
    log.started("indexer", network="preview")
    assert not capsys.readouterr().err, "a refusal to start is one line"
    structlog.get_logger().info("waiting")
    line, other = lines(capsys)
    assert other["event"] == "waiting"
    assert (line["event"], line["process"], line["network"]) == ("process.started", "indexer", "preview")
    assert (line["version"], line["schema_version"]) == (VERSION, schema.VERSION)


def test_without_a_terminal_the_form_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure()
    structlog.get_logger().info("event")
    assert [line["event"] for line in lines(capsys)] == ["event"]


def test_the_readable_form_has_no_colours_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("info", "console")
    structlog.get_logger().info("store.appended", blocks=3)
    shown = capsys.readouterr().err
    assert "store.appended" in shown
    assert "blocks=3" in shown
    assert "\x1b" not in shown


def test_an_answer_in_the_readable_form_has_its_own_time_and_request(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    log.configure("info", "console")
    access_log = AccessLog(settings.read({"LOG_FORMAT": "console"}))
    with monkeypatch.context() as earlier:
        earlier.setattr("time.time", lambda: 1_577_836_800.0)
        access_log.note(RequestFacts(0.0, "GET", None, "of-the-caller", None), 200, 41, 0.0012)
    access_log.flush()
    [shown] = capsys.readouterr().err.splitlines()
    assert shown.startswith("2020-01-01T00:00:00")
    assert shown.count("2020-01-01") == 1
    assert "[info" in shown
    for expected in ("request.answered", "request_id=of-the-caller", "status=200", "bytes=41", "ms=1.2"):
        assert expected in shown


def test_lines_follow_standard_error_when_a_progress_bar_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    log.configure("info", "json")
    bar = io.StringIO()
    monkeypatch.setattr(sys, "stderr", bar)
    structlog.get_logger().info("event")
    assert "event" in bar.getvalue()


def test_configuring_again_does_not_double_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    log.configure("info", "json")
    log.configure("info", "json")
    structlog.get_logger().info("once")
    assert len(lines(capsys)) == 1
