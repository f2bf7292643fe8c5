"""What trimming has changed is judged once more, and nothing else is."""

import pytest

from remask.contract.messages import Reason
from remask.lsp_server.aside import Aside
from remask.lsp_server.context import Place, place_in
from remask.lsp_server.document import Document, Position
from remask.lsp_server.features import ghost
from remask.lsp_server.features.ghost import tidied
from remask.lsp_server.recheck import trimming_broke


def place(text: str = "def g():\n    \n\nx = 1\n", line: int = 1, column: int = 4) -> Place:
    found = place_in(Document("file:///a.py", "python", 1, text), Position(line, column))
    assert isinstance(found, Place)
    return found


@pytest.mark.parametrize(
    ("written", "left", "broken"),
    [
        ("f(a)", "f(a", True),
        ("f(a)", "f(b)", False),
        ("f(a", "f(", False),  # it was no program before: the engine has judged it
        ("if a:\n        b\n        c", "if a:\n        b\n      c", True),
    ],
)
def test_trimming_that_breaks_a_program_is_noticed(written: str, left: str, broken: bool) -> None:
    assert trimming_broke(place(), written, left) is broken


async def test_only_what_trimming_changed_is_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    aside = Aside()
    judged: list[tuple[str, str]] = []
    monkeypatch.setattr(ghost, "trimming_broke", lambda _, written, left: bool(judged.append((written, left))))
    assert (await tidied(["return 1", "return (a\n    return (a"], place(), aside))[0]
    assert not judged
    assert await tidied(["b)"], place("x = f(a, )\n", 0, 9), aside) == (("b",), Reason.EMPTY)
    assert judged == [("b)", "b")]
    aside.close()
