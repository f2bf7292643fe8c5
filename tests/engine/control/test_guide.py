"""Guide text: read before all else, as a comment of the language, and in nobody's file."""

import pytest
from tiny import PREFIX, SPEC, SUFFIX, scripted_model, tiny_model

from remask.contract.errors import InputError
from remask.contract.messages import MAX_GUIDE_CHARACTERS, CompletionRequest, Reason, Snippet
from remask.engine.api import Engine
from remask.engine.control.guide import guide_comment
from remask.engine.prompt import build_prompt


@pytest.mark.parametrize(
    ("language", "mark"), [("python", "#"), ("go", "//"), ("rust", "//"), ("cobol", "#"), ("", "#")]
)
def test_a_guide_is_a_comment_in_the_files_language(language, mark):
    assert guide_comment("Use pathlib.", language) == f"{mark} Use pathlib.\n\n"


def test_every_line_of_a_guide_is_one():
    assert guide_comment("  First\tline \n\n  second\r\n", "go") == "// First line\n// second\n\n"
    assert guide_comment(" \n ", "go") == ""


def test_the_guide_comes_first_and_changes_nothing_else():
    from dataclasses import replace

    model = tiny_model(spec=replace(SPEC, context_tokens=100))
    other = (Snippet("a.py", "A = 1"),)
    plain = build_prompt(model, "x = ", "\ny\n", "python", other)
    guided = build_prompt(model, "x = ", "\ny\n", "python", other, "Be short.")
    comment = list(b"# Be short.\n\n")
    assert guided.tokens == [*comment, *plain.tokens]
    assert plain.tokens.index(SUFFIX) < plain.tokens.index(PREFIX)


def test_a_guided_request_answers_for_the_file_alone():
    prefix = "def f(x):\n    "
    length = len(build_prompt(tiny_model(), prefix, "", "python", (), "Return x."))
    engine = Engine(scripted_model("return x\n", length))
    result = engine.complete(CompletionRequest(document="a", language="python", prefix=prefix, guide="Return x."))
    assert (result.text.strip(), result.prompt.total) == ("return x", length)
    assert result.reason in (Reason.LINE, Reason.BLOCK, Reason.END)


def test_a_guide_has_bounds():
    with pytest.raises(InputError, match=f"guide has more than {MAX_GUIDE_CHARACTERS}"):
        CompletionRequest(document="a", language="python", prefix="", guide="x" * (MAX_GUIDE_CHARACTERS + 1))
    with pytest.raises(InputError, match="text in 'guide'"):
        CompletionRequest(document="a", language="python", prefix="", guide=3)
