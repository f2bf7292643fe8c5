"""Every language by one sample, see tests/support/samples.py."""

import pytest
from samples import SAMPLES
from tree_sitter import Node, QueryCursor

from remask.contract.messages import Extent, Reason
from remask.engine.judge.gate import Gate
from remask.grammars import Grammar, grammar_for_language, grammar_for_path, grammars
from remask.grammars.blocks import block_end
from remask.grammars.functions import functions_near
from remask.grammars.lexis import scan
from remask.grammars.placeholders import is_placeholder, is_todo
from remask.grammars.regions import completion_extent

names = pytest.mark.parametrize("name", SAMPLES)


def grammar(name: str) -> Grammar:
    found = grammar_for_path(SAMPLES[name].file)
    assert found is not None
    return found


def text_of(node: Node) -> str:
    assert node.text is not None
    return node.text.decode()


def test_every_grammar_has_a_sample() -> None:
    assert {g.name for g in grammars()} == set(SAMPLES)


@names
def test_the_file_name_and_each_language_id_find_it(name: str) -> None:
    assert grammar(name).name == name
    assert all(grammar_for_language(i) is grammar(name) for i in grammar(name).language_ids)


@names
def test_the_sample_parses(name: str) -> None:
    assert not grammar(name).parse("".join(SAMPLES[name].parts).encode()).root_node.has_error


@names
def test_brackets_in_strings_and_comments_do_not_count(name: str) -> None:
    lexis = scan(grammar(name), SAMPLES[name].noise)
    assert lexis.stack == ()
    assert not lexis.inside


@names
def test_an_empty_body_is_filled_as_a_block(name: str) -> None:
    prefix, _, suffix = SAMPLES[name].parts
    assert completion_extent(grammar(name), prefix, suffix) is Extent.BLOCK


@names
def test_the_block_ends_with_the_body(name: str) -> None:
    prefix, body, suffix = SAMPLES[name].parts
    draft = body + suffix
    end = block_end(grammar(name), prefix, draft + "x")
    assert end is not None
    assert draft[:end].rstrip() == body
    assert all(block_end(grammar(name), prefix, body[:n]) is None for n in range(len(body)))


@names
def test_the_function_around_the_body_and_its_last_statement_are_found(name: str) -> None:
    prefix, body, suffix = SAMPLES[name].parts
    source = (prefix + body + suffix).encode()
    root, at = grammar(name).parse(source).root_node, len((prefix + body).encode())
    function = next(one for one in functions_near(grammar(name), root, at) if one.touches(at))
    assert text_of(function.body).strip(" {}\n\t") == body
    assert function.node.start_byte < function.body.start_byte
    found = QueryCursor(grammar(name).statement_query).captures(function.body)["statement"]
    last = max((one for one in found if one.end_byte <= at + 1), key=lambda one: one.start_byte)
    assert text_of(last).rstrip(";") == body.splitlines()[-1].strip(" \t;")


@names
def test_the_gate_takes_the_true_body(name: str) -> None:
    prefix, body, suffix = SAMPLES[name].parts
    verdict = Gate(grammar(name), prefix, suffix).check(body)
    assert (verdict.text, verdict.reason) == (body, None)


@names
def test_the_gate_cuts_a_body_with_an_open_bracket(name: str) -> None:
    prefix, body, suffix = SAMPLES[name].parts
    first, _, last = body.partition("\n")
    broken = first + "\n" + last.replace(")", "", 1)
    verdict = Gate(grammar(name), prefix, suffix).check(broken)
    assert (verdict.text, verdict.reason) == (first, Reason.CUT)


@names
def test_the_gate_refuses_a_broken_line(name: str) -> None:
    prefix, body, suffix = SAMPLES[name].parts
    at = body.index("(")
    gate = Gate(grammar(name), prefix + body[:at], body[at + 2 :] + suffix)
    assert gate.check("]").reason is Reason.SYNTAX


@names
def test_a_header_without_its_body_holds_where_one_was_being_typed(name: str) -> None:
    prefix, _, suffix = SAMPLES[name].parts
    typed, draft = ("if a ==", " 1:") if name == "python" else ("if (a ==", " 1) {")
    typed = typed.replace("(", "") if name in ("go", "rust") else typed
    draft = draft.replace(")", "") if name in ("go", "rust") else draft
    gate = Gate(grammar(name), prefix + typed, suffix)
    assert gate.check(draft).reason is None
    assert gate.check(draft.replace("1", "1 1")).reason is Reason.SYNTAX


@names
def test_its_placeholder_stands_for_code_to_come_and_its_body_does_not(name: str) -> None:
    sample = SAMPLES[name]
    assert is_placeholder(grammar(name), sample.placeholder)
    assert not any(is_placeholder(grammar(name), line) for line in sample.parts[1].split("\n"))


@names
def test_a_block_with_a_placeholder_alone_is_filled_as_a_block(name: str) -> None:
    prefix, _, suffix = SAMPLES[name].parts
    indent = prefix[prefix.rfind("\n") :]
    assert completion_extent(grammar(name), prefix, indent + SAMPLES[name].placeholder + suffix) is Extent.BLOCK


@names
def test_a_comment_may_say_that_something_is_to_do(name: str) -> None:
    mark = grammar(name).text.line_comments[0]
    assert is_todo(grammar(name), f"    {mark} TODO: all of it")
    assert not is_todo(grammar(name), f"    {mark} to do")
    assert not is_todo(grammar(name), "TODO = 1")
