"""The bug reports of other servers' users that this one is held against: each has a test that names its number."""

from __future__ import annotations

import ast
import re
from pathlib import Path

HERE = Path(__file__).parent
REPORTS = 42


def test_every_report_has_a_test_that_names_it() -> None:
    named: set[int] = set()
    for path in HERE.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                said = re.match(r"Reports? ([\d, ]+)", ast.get_docstring(node) or "")
                named.update(map(int, re.findall(r"\d+", said[1])) if said else ())
    assert named == set(range(1, REPORTS + 1))
