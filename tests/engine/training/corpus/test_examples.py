"""Examples hold a file's own text, in the engine's layout, in every kind; an end follows whole middles only."""

from collections import Counter

import numpy as np
import pytest
from tiny import END, MASK, PREFIX, SUFFIX

from remask.engine.training.corpus.documents import Document
from remask.engine.training.corpus.examples import AROUND, MIDDLE, ExampleOptions, Marks, make_examples
from remask.engine.training.corpus.examples import PREFIX as BEFORE
from remask.engine.training.corpus.holes import DRAWERS, HoleKinds
from remask.engine.training.corpus.outline import outline
from remask.engine.training.corpus.windows import WindowBounds
from remask.grammars.language import grammar_for_language

MARKS = Marks(PREFIX, SUFFIX, END, MASK)
FUNCTION = '''
def total_{n}(values, bound={n}):
    """The sum of all values above a bound.

    >>> total_{n}([1, {n}])
    1
    """
    result = 0
    for value in values:
        if value > bound:
            # <|endoftext|> is plain text here, and so is ☕
            result += value * {n}
    return result

'''
FILE = "import os\n\n" + "".join(FUNCTION.format(n=n) for n in range(40)) + "print(total_1([os.name]))\n"
# One token a byte: what are 512 tokens of a real tokenizer are some 1,700 here.
OPTIONS = ExampleOptions(longest=1_700, bounds=WindowBounds(prefix=1_200, suffix=400, middle=400))


def encode(texts):
    return [list(t.encode()) for t in texts]


def examples(text=FILE, options=OPTIONS, seed=0, other_files=None, language="python"):
    shape = outline(grammar_for_language(language), text)
    document = Document("package", "a.py", text)
    rng = np.random.default_rng(seed)
    more = {} if other_files is None else {"other_files": other_files}
    return make_examples(document, shape, encode, MARKS, options, rng, **more)


def of(**shares):
    return HoleKinds(**(dict.fromkeys(DRAWERS, 0.0) | shares))


def parts(example, longest=1_700):
    """Other files, suffix, prefix and middle of an example as text; None for a suffix that is not there."""
    assert example.tokens.dtype == np.int32
    assert example.roles.dtype == np.uint8
    assert len(example.tokens) == len(example.roles) <= longest
    assert sorted(example.roles.tolist()) == example.roles.tolist()
    around, before, middle = (example.tokens[example.roles == r].tolist() for r in (AROUND, BEFORE, MIDDLE))
    assert before[0] == PREFIX
    assert (middle[-1] == END) is example.whole
    others, mark, suffix = around, [], None
    if SUFFIX in around:
        others, mark, suffix = around[: around.index(SUFFIX)], [SUFFIX], around[around.index(SUFFIX) + 1 :]
    texts = [others, before[1:], middle[:-1] if example.whole else middle]
    assert mark or suffix is None
    assert all(t < 256 for part in (*texts, suffix or []) for t in part)  # the marks' names stay plain text
    decoded = [bytes(t).decode("utf-8", "ignore" if not example.whole else "strict") for t in texts]
    return decoded[0], None if suffix is None else bytes(suffix).decode(), decoded[1], decoded[2]


def test_every_example_is_a_stretch_of_the_file():
    made = examples()
    assert len(made) == pytest.approx(len(FILE) / OPTIONS.per_tokens, rel=0.2)
    for example in made:
        others, suffix, prefix, middle = parts(example)
        assert others == ""
        assert middle.strip()
        stretch = prefix + middle + (suffix or "" if example.whole else "")
        assert stretch in FILE
        assert prefix == "" or FILE.startswith(prefix) or "\n" + prefix in FILE


def test_the_same_seed_makes_the_same_examples():
    one, again, other = examples(seed=1), examples(seed=1), examples(seed=2)
    assert [e.tokens.tolist() for e in one] == [e.tokens.tolist() for e in again]
    assert [e.tokens.tolist() for e in one] != [e.tokens.tolist() for e in other]


def test_nearly_all_text_is_seen():
    seen = np.zeros(len(FILE), bool)
    for example in examples():
        _, suffix, prefix, middle = parts(example)
        stretch = prefix + middle + (suffix or "" if example.whole else "")
        at = FILE.index(stretch)
        seen[at : at + len(stretch)] = True
    assert seen.mean() > 0.9


def test_kinds_come_in_their_shares():
    options = ExampleOptions(longest=1_700, per_tokens=10, bounds=OPTIONS.bounds)
    made = examples(options=options)
    counts = Counter(e.kind for e in made)
    weights = HoleKinds().weights()
    assert sum(weights.values()) == pytest.approx(1)
    assert {k: counts[k] / len(made) for k in weights} == pytest.approx(weights, abs=0.06)
    assert sum(e.documented for e in made) / len(made) > 0.3


@pytest.mark.parametrize("kind", DRAWERS)
def test_holes_of_each_kind(kind):
    check = {"line": is_line, "line_end": is_line_end, "statement": is_statement, "body": is_body, "open": is_open}
    options = ExampleOptions(longest=1_700, per_tokens=100, kinds=of(**{kind: 1.0}), bounds=OPTIONS.bounds)
    made = examples(options=options)
    assert len(made) > 50
    for example in made:
        assert example.kind == kind
        check.get(kind, lambda *_: None)(*parts(example)[1:])


def ends_well(suffix, middle):
    """A file goes on behind a hole, or is cut off where its function ends."""
    return middle.endswith("return result") if suffix is None else suffix.startswith("\n")


def is_line(suffix, prefix, middle):
    assert prefix.endswith("\n")
    assert "\n" not in middle.removesuffix("\n")
    assert middle.endswith("\n") or ends_well(suffix, middle)


def is_line_end(suffix, prefix, middle):
    assert "\n" not in middle
    assert (suffix is None and "return result".endswith(middle)) or suffix.startswith("\n")


def is_statement(suffix, prefix, middle):
    assert ends_well(suffix, middle)
    assert middle.lstrip().startswith(("result", "for", "if", "return"))


def is_body(suffix, prefix, middle):
    assert middle.endswith("return result")
    assert prefix.rstrip().endswith(('"""', ":"))


def is_open(suffix, prefix, middle):
    assert suffix is None


def test_a_middle_cut_at_its_bound_has_no_end():
    options = ExampleOptions(
        longest=1_700, per_tokens=100, kinds=of(body=1.0), bounds=WindowBounds(prefix=1_200, suffix=300, middle=60)
    )
    made = examples(options=options)
    assert made
    assert not any(e.whole for e in made)
    assert {int((e.roles == MIDDLE).sum()) for e in made} == {60}


def test_no_example_is_longer_than_a_row():
    options = ExampleOptions(longest=300, bounds=OPTIONS.bounds)
    assert max(len(e.tokens) for e in examples(options=options)) <= 300


def test_other_files_stand_in_front():
    made = examples(other_files=lambda document, hole, shown: "# b.py\ndef g():\n\n")
    assert {parts(e)[0] for e in made} == {"# b.py\ndef g():\n\n"}


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("x = 1\ny = 2\n", "python"),
        ("x", "python"),
        ("\n\n\n", "python"),
        ("def f():\n    pass", "python"),
        ("a = '" + "☕" * 900 + "'\n", "python"),
        ('fn main() {\n    let a = 1;\n    println!("{}", a);\n}\n' * 9, "rust"),
    ],
)
def test_odd_files_break_nothing(text, language):
    options = ExampleOptions(longest=1_700, per_tokens=20, bounds=OPTIONS.bounds)
    for example in examples(text, options, language=language):
        _, suffix, prefix, middle = parts(example)
        assert prefix + middle + (suffix or "") in text or not example.whole
