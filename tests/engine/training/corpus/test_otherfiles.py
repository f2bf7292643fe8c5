"""Definitions from other files: those that are imported and called, in the engine's form."""

import numpy as np
import pytest

from remask.engine.training.corpus.documents import Document
from remask.engine.training.corpus.otherfiles import Definitions, imported_names, summarised

HELPERS = '''def scaled(value, by=2):
    """The value, scaled."""
    return value * by


class Account(Base):
    """Money."""

    def __init__(self):
        self.total = 0

    def deposit(self, amount: int) -> None:
        self.total += amount


def twice():
    return 2
'''
USER = "from package.helpers import Account, scaled as s, scaled\nfrom x import twice\n\nscaled(3)\nAccount()\n"


@pytest.fixture
def definitions():
    documents = [Document("package", "package/helpers.py", HELPERS), Document("other", "o.py", "def twice():\n    1\n")]
    return Definitions([*documents, Document("package", "package/user.py", USER)])


def shown(definitions, code, document=None):
    document = document or Document("package", "package/user.py", USER)
    return definitions.shown_for(document, code, np.random.default_rng(0))


def test_a_called_import_is_shown_as_the_engine_does(definitions):
    text = shown(definitions, "x = scaled(")
    assert text == '# package/helpers.py\ndef scaled(value, by=2):\n    """The value, scaled."""\n\n'


def test_a_class_shows_its_public_methods(definitions):
    text = shown(definitions, "Account()")
    assert text == "# package/helpers.py\nclass Account(Base):\n    def deposit(self, amount: int) -> None:\n\n"


@pytest.mark.parametrize("code", ["scaled", "unknown()", "", "def f(): pass"])
def test_nothing_is_shown_for_what_is_not_called(definitions, code):
    assert shown(definitions, code) == ""


def test_a_files_own_definitions_and_other_packages_are_not_shown(definitions):
    own = Document("package", "package/helpers.py", HELPERS)
    assert shown(definitions, "scaled(1)", own) == ""
    elsewhere = Document("another", "a.py", USER)
    assert shown(definitions, "scaled(1)", elsewhere) == ""


def test_imported_names():
    text = "from a import (\n    one,\n    two as zwei,\n)\nfrom b.c import three, four\nimport five\n"
    assert {"one", "two", "three", "four"} <= imported_names(text)
    assert "five" not in imported_names(text)


def test_definitions_too_long_to_show_are_cut_or_left_out():
    long = '"""' + "words " * 200 + '"""'
    assert summarised(f"def f(a):\n    {long}\n    return a\n") == "def f(a):\n"
    assert summarised("def f(" + "a, " * 300 + "):\n    return 1\n") == ""
    assert summarised("x = 1") == ""
    many = "class C:\n" + "".join(f"    def method_{i}(self, a, b):\n        return a\n" for i in range(50))
    assert 0 < len(summarised(many)) <= 380
