"""What stands for code to come, in every language; and what only looks like it."""

import pytest

from remask.grammars import grammar_for_language
from remask.grammars.placeholders import is_placeholder, is_todo


def check(language: str, statement: str) -> bool:
    grammar = grammar_for_language(language)
    assert grammar is not None
    return is_placeholder(grammar, statement)


@pytest.mark.parametrize(
    ("language", "statement"),
    [
        ("python", "pass"),
        ("python", " ...  "),
        ("python", "raise NotImplementedError"),
        ("python", "raise NotImplementedError(f'{self.name(1)} is abstract')"),
        ("python", "raise Exception('TODO')"),
        ("python", 'assert False, "not implemented"'),
        ("javascript", ";"),
        ("javascript", "throw new Error(`${name} is not implemented yet`);"),
        ("javascript", 'throw "TODO"'),
        ("typescript", "throw new errors.NotImplementedError();"),
        ("typescriptreact", "throw Error('Unimplemented')"),
        ("go", 'panic("TODO: everything")'),
        ("go", 'return nil, errors.New("not implemented")'),
        ("go", 'return 0, fmt.Errorf("%s: not yet implemented", name)'),
        ("rust", "todo!()"),
        ("rust", 'unimplemented!("the {} case", 1);'),
        ("rust", 'panic!("not implemented")'),
        ("java", "throw new UnsupportedOperationException();"),
        ("java", 'throw new UnsupportedOperationException("Not supported yet.");'),
        ("java", 'throw new RuntimeException("TODO");'),
        ("c", 'assert(!"implement me");'),
        ("cpp", 'throw std::logic_error("Not implemented");'),
        ("cpp", "throw errors::NotImplemented();"),
    ],
)
def test_it_is_one(language: str, statement: str) -> None:
    assert check(language, statement)


@pytest.mark.parametrize(
    ("language", "statement"),
    [
        ("python", "return a"),
        ("python", "raise ValueError('x')"),
        ("python", "raise ConfigError('the implementation of %s is missing' % name)"),
        ("python", "todo()"),
        ("javascript", "pass"),
        ("javascript", "throw new Error('no such file')"),
        ("go", 'panic("index out of range")'),
        ("go", "return todo"),
        ("rust", "todo"),
        ("rust", 'panic!("at {}", todo)'),
        ("java", 'throw new IllegalStateException("methodology");'),
        ("c", "assert(todo);"),
        ("cpp", "throw;"),
    ],
)
def test_it_is_none(language: str, statement: str) -> None:
    assert not check(language, statement)


@pytest.mark.parametrize(
    ("language", "line", "expected"),
    [
        ("python", "    # TODO: all", True),
        ("python", "x = 1  # TODO", False),
        ("python", "* TODO", False),
        ("java", " * FIXME later", True),
        ("c", "/* XXX */", True),
        ("go", "// todos", False),
    ],
)
def test_a_comment_that_says_that_something_is_to_do(language: str, line: str, expected: bool) -> None:
    grammar = grammar_for_language(language)
    assert grammar is not None
    assert is_todo(grammar, line) is expected
