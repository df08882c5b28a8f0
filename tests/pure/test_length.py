"""No function is longer than a reader takes in at a time. Ruff counts its branches (`max-complexity`)."""

import ast
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
MAX_LINES = 60


@pytest.mark.parametrize("package", ["api", "bench", "devnet", "indexer", "shared"])
def test_a_function_has_at_most_60_lines(package: str) -> None:
    modules = sorted((CHECKOUT / package).rglob("*.py"))
    assert modules
    functions = {
        f"{module.relative_to(CHECKOUT)}:{node.lineno} {node.name}": node
        for module in modules
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    lines = {name: (node.end_lineno or 0) + 1 - node.lineno for name, node in functions.items()}
    assert {name: length for name, length in lines.items() if length > MAX_LINES} == {}
