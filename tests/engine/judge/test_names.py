"""Which names of a draft nothing defines, in every language."""

from dataclasses import replace

import pytest
from samples import SAMPLES

from remask.engine.judge.names import NamesJudge
from remask.grammars import grammar_for_language
from remask.grammars.rules import NameRules


def unknown(language, prefix, draft, suffix="", **options):
    report = NamesJudge(grammar_for_language(language), prefix, suffix, **options).check(draft)
    for one in report.unknown:
        assert draft.encode()[one.start : one.end].decode() in one.name
    return [one.name for one in report.unknown]


@pytest.mark.parametrize("language", SAMPLES)
def test_a_whole_body_is_known_and_a_made_up_name_in_it_is_not(language):
    prefix, body, suffix = SAMPLES[language].parts
    assert unknown(language, prefix, body, suffix) == []
    called = "p.a" if language == "tsx" else "a + b"
    assert called in body
    assert unknown(language, prefix, body.replace(called, f"zorp.{called}"), suffix) == ["zorp"]


PY = (
    "import os\nfrom x import y as z\nLIMIT = 3\n\n\n"
    "def other(hidden):\n    inner = hidden\n\n\ndef f(a, *rest, key=1):\n    b = a\n    "
)
BELOW = "\n    late = 2\n\n\ndef last():\n    pass\n"


@pytest.mark.parametrize(
    "draft",
    [
        "return os, z, LIMIT, other, f, a, rest, key, b, late, last, print, __name__",
        "c = d = 1; (e, [g, *h]) = a; return c, d, e, g, h",
        "for i, (j, k) in a: print(i, j, k)",
        "return [i + j for i in a for j in i], {n: m for n, m in a}, lambda q, r=1: q + r",
        "with open(a) as fh, z() as (m, n): print(fh, m, n)",
        "def g(p): return p + g(a)\n    class C: pass\n    return C, g",
        "import json, os.path as p\n    from m import n, o as q\n    return json, p, n, q",
        "if (n := a): print(n)",
        "try: pass\n    except OSError as e: print(e)",
        "match a:\n        case [m, *n] | {'k': m, **n}: print(m, n)\n        case str(o) as q: print(o, q)",
        "print(file=a, end='')",
        "global counter; counter = 1; return counter",
        "return a.anything.at.all + b[a].more",
        "x: 'Later' = 1; return x",
        "return f'{a!r:>{b}}'",
        "# zorp",
        "'zorp'",
        "",
    ],
)
def test_what_a_draft_sees_or_defines_itself_is_known(draft):
    assert unknown("python", PY, draft, BELOW) == []


@pytest.mark.parametrize(
    ("draft", "names"),
    [
        ("return zorp", ["zorp"]),
        ("return hidden", ["hidden"]),  # of another function
        ("return inner", ["inner"]),
        ("zorp.x(a); b = zorp2[1]", ["zorp", "zorp2"]),
        ("return [i for i in zorp]", ["zorp"]),
        ("print(f'{zorp}')", ["zorp"]),
        ("def g(p): return p\n    return p", ["p"]),
        ("print(end=zorp)", ["zorp"]),
        ("zorp.x = 1", ["zorp"]),
        ("raise Zorp(a)", ["Zorp"]),
    ],
)
def test_what_nothing_defines_is_unknown(draft, names):
    assert unknown("python", PY, draft, BELOW) == names


def test_a_word_that_the_draft_goes_on_with_is_judged_whole():
    assert unknown("python", "value = 1\nprint(val", "ue", ")\n") == []
    assert unknown("python", "value = 1\nprint(val", "id", ")\n") == ["valid"]


def test_names_are_counted_as_often_as_they_stand():
    report = NamesJudge(grammar_for_language("python"), PY, BELOW).check("return zorp + a + zorp + b")
    assert (report.judged, report.share, report.spans) == (4, 0.5, [(7, 11), (18, 22)])


def test_spans_are_bytes_of_the_draft():
    report = NamesJudge(grammar_for_language("python"), "# ä\n", "").check("s = 'ö€'; print(zörp)")
    assert [b"s = '\xc3\xb6\xe2\x82\xac'; print(z\xc3\xb6rp)"[a:b].decode() for a, b in report.spans] == ["zörp"]


def test_words_of_other_files_are_known():
    assert unknown("python", PY, "return helper(a)", BELOW, others=["def helper(x): ..."]) == []


def test_a_star_import_leaves_only_plain_variables_to_judge():
    assert unknown("python", "from tkinter import *\nx = 1\n", "y = Button(END, pack(x), zorp)") == ["zorp"]


CLASS = "class A{}:\n    size: int = 0\n\n    def __init__(self):\n        self.name = 1\n\n    def m(self):\n        "


@pytest.mark.parametrize(
    ("bases", "draft", "names"),
    [
        ("", "return self.name + self.size + self.m() + self.__dict__", []),
        ("", "return self.nmae", ["nmae"]),
        ("", "self.new = 1; return self.new", []),
        ("", "return size", ["size"]),  # a class body's names are not seen from its methods
        ("(Base)", "return self.inherited", []),
    ],
)
def test_attributes_of_self(bases, draft, names):
    assert unknown("python", "class Base: pass\n" + CLASS.format(bases), draft) == names


@pytest.mark.parametrize(
    ("language", "prefix", "draft", "suffix", "names"),
    [
        ("javascript", "class A { constructor() { this.n = 1; } m() { ", "return this.n + this.k;", " } }", ["k"]),
        ("typescript", "class A extends B { m() { ", "return this.k + zorp;", " } }", ["zorp"]),
        ("typescript", "function f({ a, b: c = 1 }: P, ...r: Q[]) { ", "return a + c + r.length + b;", " }", ["b"]),
        ("tsx", "const A = () => (", "<div><Zorp a={zorp} /></div>", ")", ["Zorp", "zorp"]),
        (
            "go",
            'package a\nimport m "math/rand"\nfunc f(a int) {\n\t',
            "b, err := m.X(a); use(b, err, zorp)",
            "\n}\n",
            ["zorp"],
        ),
        (
            "rust",
            "use std::{io::{self, Read}, fmt};\nfn f(a: u8) {\n",
            "let Some(b) = a else { return };\nx(io::y(b), zorp);",
            "}\n",
            ["x", "zorp"],
        ),
        (
            "java",
            "class A { int n; int f(int a) { ",
            "for (int i = 0; i < n; i++) { a += i; } return a + zorp;",
            " } }",
            ["zorp"],
        ),
        ("java", "class A extends B { int f(int a) { ", "return a + inherited;", " } }", []),
        (
            "c",
            "#include <a.h>\nint f(int *a) {\n",
            "int i, *p = a; for (i = 0; i < MAX; i++) g(p[i], zorp); return i;",
            "\n}\n",
            ["zorp"],
        ),
        (
            "cpp",
            "int f(std::vector<int>& v) {\n",
            "for (auto& x : v) { auto l = [&](int y) { return x + y; }; l(zorp); }",
            "\n}\n",
            ["zorp"],
        ),
        ("cpp", "void A::f(int a) {\n", "count_ = a;", "\n}\n", []),
    ],
)
def test_other_languages(language, prefix, draft, suffix, names):
    assert unknown(language, prefix, draft, suffix) == names


def test_nothing_is_unknown_in_a_text_that_the_parser_cannot_follow():
    assert unknown("python", "def f(a:\n  if ((a\n", "return a + f", "\n") == []


def test_a_grammar_without_rules_judges_nothing():
    grammar = grammar_for_language("python")
    bare = replace(grammar, names=NameRules())
    report = NamesJudge(bare, PY, BELOW).check("return zorp")
    assert (report.judged, report.unknown) == (0, ())


def test_a_huge_text_is_left_alone():
    grammar = grammar_for_language("python")
    assert NamesJudge(grammar, "x = 1\n" * 40_000, "").check("zorp").judged == 0
    deep = "x = [" + "(1, 2), " * 15_000 + "]\n"
    assert NamesJudge(grammar, deep, "").check("zorp").judged == 0


class Answers:
    """Packages that know a fixed set of expressions."""

    def __init__(self, **known):
        self.known = known
        self.asked = []

    def judge(self, imports, expressions):
        self.asked.append((imports, list(expressions)))
        return [self.known.get(e.replace(".", "_")) for e in expressions]


def test_attributes_of_imported_modules_are_asked_for_with_the_imports_alone():
    packages = Answers(os_getcwd=True, os_getcvd=False)
    draft = "return os.getcwd(), os.getcvd(), os.later, z.y, a.b, a().c"
    assert unknown("python", PY, draft, BELOW, packages=packages) == ["getcvd"]
    assert packages.asked == [("import os\nfrom x import y as z", ["os.getcwd", "os.getcvd", "os.later", "z.y"])]


def test_a_local_name_hides_the_module():
    packages = Answers()
    assert unknown("python", "import os\ndef f(os):\n    ", "return os.zorp", packages=packages) == []
    assert packages.asked == [("import os", [])]
