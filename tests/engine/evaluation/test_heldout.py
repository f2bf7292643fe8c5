"""Holes made from held-out files."""

import json

import pytest

from remask.contract.errors import InputError
from remask.engine.evaluation.heldout import make_tasks
from remask.engine.evaluation.tasks import SPLITS

SHAPES = '''"""Shapes."""

from .units import Length, to_metres
from geometry.helpers import largest as biggest
import math


class Square:
    """A square."""

    def __init__(self, side):
        self.side = to_metres(side)  # in metres

    def area(self):
        """Its area."""
        factor = 1.0
        if self.side < 0:
            raise ValueError("no side is négative: %r" % self.side)
        return factor * self.side * self.side

    def outer(self, squares):
        def inner(square):
            return square.area()

        return biggest(squares, inner)
'''
UNITS = '''"""Units."""

from .helpers import largest


class Length:
    """A length."""

    def in_metres(self):
        return 1.0


def to_metres(length):
    """A length as a number."""
    return largest([length.in_metres()], float)
'''
HELPERS = 'def largest(items, key):\n    """The largest."""\n    return max(items, key=key)\n'
BROKEN = "def f(:\n    return 1\n"
FILES = {
    "geometry/shapes.py": SHAPES,
    "geometry/units.py": UNITS,
    "geometry/helpers.py": HELPERS,
    "geometry/broken.py": BROKEN,
    "geometry/notes.txt": "no code",
}


@pytest.fixture
def folder(tmp_path):
    lines = [json.dumps({"package": "geometry", "path": path, "text": text}) for path, text in FILES.items()]
    (tmp_path / "validation.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path


def tasks(folder, split, **options):
    return make_tasks(folder, SPLITS[split], options.pop("limit", None), options.pop("seed", 0), **options)


@pytest.mark.parametrize("split", ["line-end", "statement", "body", "inside-token", "cross-file"])
def test_a_task_is_its_file_with_a_hole(folder, split):
    made = tasks(folder, split)
    assert len({t.name for t in made}) == len(made) > 0
    for task in made:
        assert task.prefix + task.truth + task.suffix == FILES[task.name.split(":")[0]]
        assert (task.language, task.test) == ("python", "")
        assert task.truth.strip()
    assert made == tasks(folder, split)
    assert made[:2] == tasks(folder, split, limit=2)


def test_line_ends_start_at_a_token_and_leave_comments_out(folder):
    for task in tasks(folder, "line-end"):
        assert task.suffix.startswith("\n") or not task.suffix
        assert "\n" not in task.truth
        head = task.prefix.rpartition("\n")[2]
        assert head.strip()
        assert not (head[-1].isalnum() and task.truth[0].isalnum())
        assert "#" not in head + task.truth
        assert '"""' not in head + task.truth


def test_the_cursor_stands_inside_a_name(folder):
    made = tasks(folder, "inside-token")
    assert all((t.prefix[-1] + t.truth[0]).isidentifier() for t in made)
    assert all(t.suffix.startswith("\n") or not t.suffix for t in made)
    assert made != tasks(folder, "inside-token", seed=1)


def test_statements_are_whole_and_define_nothing(folder):
    truths = {t.truth for t in tasks(folder, "statement")}
    assert "factor = 1.0" in truths
    assert 'if self.side < 0:\n            raise ValueError("no side is négative: %r" % self.side)' in truths
    assert not any(t.startswith(("def ", "class ", "import", '"""')) for t in truths)
    assert not any("def inner" in t for t in truths)


def test_bodies_stand_behind_the_docstring(folder):
    made = {t.truth: t for t in tasks(folder, "body")}
    area = next(t for truth, t in made.items() if truth.startswith("factor"))
    assert area.prefix.endswith('"""Its area."""\n        ')
    assert area.truth.endswith("return factor * self.side * self.side")
    assert "return square.area()" not in made  # part of a body that is a task itself


def test_names_of_other_files_come_with_their_definition(folder):
    made = {t.prefix.split()[-1].rpartition("(")[2] + t.truth: t for t in tasks(folder, "cross-file")}
    shown = {call: [(s.path, s.text.split("\n")[0]) for s in t.context] for call, t in made.items()}
    assert shown == {
        "to_metres(side)  # in metres": [("geometry/units.py", "def to_metres(length):")],
        "biggest(squares, inner)": [("geometry/helpers.py", "def largest(items, key):")],
        "largest([length.in_metres()], float)": [("geometry/helpers.py", "def largest(items, key):")],
    }
    assert not any(t.context for t in tasks(folder, "cross-file", context=False))


def test_a_name_is_followed_through_modules_that_pass_it_on(tmp_path):
    files = {
        "pkg/__init__.py": "from .core import run\nfrom .core import missing\n",
        "pkg/core.py": "def run(task, *, times):\n    pass\n",
        "pkg/use.py": "from pkg import run, missing\n\nrun(print, times=2)\nmissing(1, 2)\n",
        "pkg/circle.py": "from .other import go\n\n\ndef go(task):\n    pass\n\n\ngo(1, 2, 3)\n",
        "pkg/other.py": "from .circle import go\n",
    }
    lines = [json.dumps({"package": "pkg", "path": path, "text": text}) for path, text in files.items()]
    (tmp_path / "validation.jsonl").write_text("\n".join(lines))
    made = tasks(tmp_path, "cross-file")
    assert [(t.truth, t.context[0].path) for t in made] == [("(print, times=2)", "pkg/core.py")]


def test_a_class_without_methods_is_shown_by_its_first_lines(tmp_path):
    fields = "".join(f"    field_{i}: int = {i}\n" for i in range(30))
    files = {
        "pkg/data.py": f"class Data:\n{fields}\n\nlater = 1\n",
        "pkg/use.py": "from .data import Data\n\nData(1, 2)\n",
    }
    lines = [json.dumps({"package": "pkg", "path": path, "text": text}) for path, text in files.items()]
    (tmp_path / "validation.jsonl").write_text("\n".join(lines))
    (made,) = tasks(tmp_path, "cross-file")
    shown = made.context[0].text
    assert shown.startswith("class Data:\n    field_0: int = 0\n")
    assert shown.count("\n") == 9


def test_what_cannot_be_used_is_one_sentence(tmp_path):
    with pytest.raises(InputError, match=r"no validation\.jsonl"):
        tasks(tmp_path, "body")
    (tmp_path / "validation.jsonl").write_text('{"package": "a", "path": "b.py"}\n')
    with pytest.raises(InputError, match=r"Line 1 of .* is no held-out file"):
        tasks(tmp_path, "body")
    (tmp_path / "validation.jsonl").write_text(json.dumps({"package": "a", "path": "b.py", "text": "x = 1\n"}) + "\n")
    with pytest.raises(InputError, match="no place for the split 'body'"):
        tasks(tmp_path, "body")
