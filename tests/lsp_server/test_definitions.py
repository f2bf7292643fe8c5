"""The definitions in a file, and the names that it imports and calls; of every language by its sample."""

from __future__ import annotations

from dataclasses import replace

import pytest
from samples import SAMPLES

from remask.grammars import Grammar, grammar_for_path
from remask.grammars.rules import DefinitionRules
from remask.lsp_server.definitions import MAX_IMPORT_LINES, called_names, definitions, imported_names


def grammar(name: str) -> Grammar:
    found = grammar_for_path(SAMPLES[name].file)
    assert found is not None
    return found


PYTHON = grammar("python")


@pytest.mark.parametrize("name", SAMPLES)
def test_other_files_are_shown_the_definitions_of_a_file(name: str) -> None:
    found = definitions(grammar(name), SAMPLES[name].outline)
    assert [one.name for one in found] == SAMPLES[name].defines.split()


@pytest.mark.parametrize("name", SAMPLES)
def test_names_come_from_lines_that_import_and_the_brackets_they_open(name: str) -> None:
    assert imported_names(grammar(name), SAMPLES[name].imports) == SAMPLES[name].brings.split()


@pytest.mark.parametrize("name", SAMPLES)
def test_the_kinds_that_a_grammar_names_are_its_parsers(name: str) -> None:
    language, rules = grammar(name).language, grammar(name).definitions
    named = [entry.partition(".")[0] for entry in rules.named]
    for kind in (*named, *rules.within, *rules.code, *grammar(name).nodes.blocks, *grammar(name).nodes.lists):
        assert language.id_for_node_kind(kind, True), kind
    fields = [field for entry in rules.named if (field := entry.partition(".")[2])]
    assert all(language.field_id_for_name(field) for field in fields)
    assert set(rules.code) <= set(named)


def test_a_function_is_shown_by_its_signature_and_documentation() -> None:
    text = 'class A:\n    x = 1\n    def m(self, a):\n        """Do it."""\n        return a\n\n\ndef f(b): return b\n'
    shown = {one.name: one.text for one in definitions(PYTHON, text)}
    assert shown["m"] == '    def m(self, a):\n        """Do it."""'
    assert shown["f"] == "def f(b):"


def test_a_string_at_the_start_of_a_body_says_nothing_where_the_language_has_no_such_thing() -> None:
    text = 'function f(a) {\n  "use strict";\n  return a;\n}\n'
    assert [one.text for one in definitions(grammar("javascript"), text)] == ["function f(a)"]


def test_a_struct_that_is_only_used_is_no_definition() -> None:
    assert not list(definitions(grammar("c"), "struct s *a;\n"))


def test_called_names_are_those_before_an_opening_bracket() -> None:
    assert called_names(PYTHON, "f(a) + g (b) + h + m!(1)") == {"f", "g"}
    assert called_names(grammar("rust"), "f(a) + m!(1) + n !(2)") == {"f", "m", "n"}


def test_a_list_of_names_that_is_never_closed_ends_somewhere() -> None:
    names = imported_names(PYTHON, "from a import (\n" + "".join(f"    n{at},\n" for at in range(10_000)))
    assert len(names) == len(["from", "a", "import"]) + MAX_IMPORT_LINES


def test_a_language_without_the_table_has_none() -> None:
    bare = replace(PYTHON, name="bare", definitions=DefinitionRules())
    assert not list(definitions(bare, "def f(): pass\n"))
    assert not imported_names(bare, "import a\n")


@pytest.mark.parametrize("text", ["a" * 100_000, "f0" * 50_000 + "!", "a" + " " * 100_000, "\t" * 100_000])
def test_one_very_long_word_or_gap_holds_nothing_up(text: str) -> None:
    assert not called_names(PYTHON, text)
    assert not imported_names(PYTHON, text)
    assert called_names(PYTHON, f"{text}\nprint (x)\nf(1)") == {"print", "f"}
