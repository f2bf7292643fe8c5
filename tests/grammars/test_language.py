"""Grammars as data: found by name, refused with one sentence when they are damaged."""

import subprocess
import sys
from importlib import resources

import pytest

from remask.contract.errors import InputError
from remask.grammars import GrammarError, grammar_for_language, grammar_for_path, language, language_of, load_grammar

PYTHON = resources.files("remask.grammars").joinpath("python.toml").read_text("utf-8")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.py", "python"),
        ("/x/y.z/A.PYI", "python"),
        ("a.jsx", "javascript"),
        ("a.tsx", "typescriptreact"),
        ("a.h", "c"),
        ("Makefile", None),
        (".py", None),
        ("", None),
        ("a.unknown", None),
    ],
)
def test_language_of(path, expected):
    assert language_of(path) == expected


def test_unknown_names_have_no_grammar():
    assert grammar_for_language("klingon") is None
    assert grammar_for_path("a.unknown") is None


@pytest.mark.parametrize(
    ("path", "has"), [("a.py", True), ("/x/a.PYI", False), ("a.ts", True), ("a.d.ts", False), ("a.d.mts", False)]
)
def test_a_file_of_declarations_has_no_bodies(path, has):
    assert grammar_for_path(path).has_bodies(path) is has


def test_a_grammar_is_loaded_once():
    assert grammar_for_path("a.py") is grammar_for_language("python")
    assert grammar_for_language("python").language is grammar_for_language("python").language


def test_importing_and_looking_up_loads_no_parser():
    code = (
        "import sys; from remask.grammars import language_of; language_of('a.py'); print('tree_sitter' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('name = "python"', "name = ", "not TOML"),
        ('name = "python"', "", "lacks 'name'"),
        ('name = "python"', 'name = "python"\ncolour = 1', "unknown entry 'colour'"),
        ('name = "python"', "name = 1", "name is not text"),
        ('language_ids = ["python"]', 'language_ids = "python"', "language_ids is not a list"),
        ('language_ids = ["python"]', "language_ids = []", "no language id"),
        ('".pyw"', '"pyw"', "extension without a dot: 'pyw'"),
        ("offside = true", 'offside = "yes"', "offside is not true or false"),
        ("block_comments = []", 'block_comments = [["/*"]]', "not a pair"),
        ('compiler = "python"', 'compiler = "gcc"', "unknown compiler: 'gcc'"),
        ("function_start = '(", "function_start = '((", "bad regular expression"),
        ("offside = true", 'offside = true\nindent = "x"', "indentation that is not white space: 'x'"),
        ("calls = ['", "calls = ['(", "bad regular expression"),
        ("imports = '(", "imports = '((", "bad regular expression"),
        ('[".pyi"]', '["pyi"]', "extension without a dot: 'pyi'"),
        ("[parser]\n", "[parser]\nspeed = 1\n", "unknown entry 'speed'"),
        ('package = "tree_sitter_python"', "", "lacks 'package'"),
    ],
)
def test_a_damaged_file_is_refused_with_its_name_and_reason(old, new, message):
    assert old in PYTHON
    with pytest.raises(GrammarError, match=r"python\.toml") as error:
        load_grammar(PYTHON.replace(old, new, 1), "python.toml")
    assert message in str(error.value)
    assert isinstance(error.value, InputError)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tree_sitter_python", "tree_sitter_nowhere"),
        ("tree_sitter_python", "json"),
        ("(function_definition", "(no_such"),
    ],
)
def test_a_parser_or_query_that_does_not_fit_is_refused_when_it_is_used(old, new):
    grammar = load_grammar(PYTHON.replace(old, new), "python.toml")
    with pytest.raises(GrammarError):
        _ = grammar.function_query


def test_one_damaged_file_leaves_the_others_alone(tmp_path, monkeypatch):
    (tmp_path / "python.toml").write_text(PYTHON)
    (tmp_path / "broken.toml").write_text("name = ")
    monkeypatch.setattr(language.resources, "files", lambda _package: tmp_path)
    language._index.cache_clear()
    try:
        assert grammar_for_language("python") is not None
        with pytest.raises(GrammarError, match=r"broken\.toml"):
            grammar_for_language("broken")
    finally:
        language._index.cache_clear()
