"""Placeholders in statements: each is filled once, at import."""

from pathlib import Path

import pytest

from shared import sql

_TEXT = """-- Pages. {order} is the direction.

-- name: page
-- A page in either direction.
SELECT 1 AS n ORDER BY n {order}

-- name: empty_array
SELECT '{}'::text[]
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sql, "statements", [])
    path = tmp_path / "pages.sql"
    path.write_text(_TEXT)
    return path


def test_one_text_makes_a_statement_for_each_value(source: Path) -> None:
    texts = [sql.Command("page", source, {"order": order}).text for order in ("ASC", "DESC")]
    assert [text.splitlines()[-1] for text in texts] == [
        "SELECT 1 AS n ORDER BY n ASC",
        "SELECT 1 AS n ORDER BY n DESC",
    ]
    assert len(sql.statements) == 2


def test_an_array_literal_is_not_a_placeholder(source: Path) -> None:
    assert sql.Command("empty_array", source, {}).text == "SELECT '{}'::text[]"


@pytest.mark.parametrize("parts", [{}, {"order": "ASC", "limit": "1"}, {"ordre": "ASC"}])
def test_a_placeholder_without_value_and_a_value_without_placeholder_are_refused(
    source: Path, parts: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match=r"page of pages\.sql has the placeholders \['order'\], but got"):
        sql.Command("page", source, parts)
    assert sql.statements == []
