"""The golden files of the post-processing."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from remask.lsp_server.postprocess import tidy

CASES = [
    (path.stem, case)
    for path in sorted((Path(__file__).parent / "golden").glob("*.toml"))
    for case in tomllib.loads(path.read_text("utf-8"))["case"]
]


@pytest.mark.parametrize("case", [case for _, case in CASES], ids=[f"{stem}: {case['name']}" for stem, case in CASES])
def test_golden(case: dict[str, Any]) -> None:
    prefix, _, suffix = case["before"].partition("|")
    text, reason = tidy(case["text"], prefix, suffix)
    assert text == case["shown"]
    assert (reason is None) == bool(text)


def test_what_is_shown_is_shown_again_unchanged() -> None:
    for _, case in CASES:
        prefix, _, suffix = case["before"].partition("|")
        if case["shown"]:
            assert tidy(case["shown"], prefix, suffix)[0] == case["shown"], case["name"]
