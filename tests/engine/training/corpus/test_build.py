"""A whole corpus from wheels and from a repository, with the default model's tokenizer (its weights stay on disk)."""

import hashlib
import zipfile

import numpy as np
import pytest

from remask.contract.errors import InputError
from remask.engine.models.checkpoint import read_tokenizer
from remask.engine.models.choice import DEFAULT_MODEL
from remask.engine.training.corpus.build import CorpusRequest, build_corpus
from remask.engine.training.corpus.download import wheel_folder
from remask.engine.training.corpus.examples import MIDDLE
from remask.engine.training.corpus.store import load_corpus

FUNCTION = '''
def {name}_{n}(values, bound={n}):
    """The {name} of all values above {n}."""
    {name} = {n}
    for value_{n} in values:
        if value_{n} > bound:
            {name} = combine_{n}({name}, value_{n}, weight={n})
    return {name}

'''
PLANTED = "distance_between_two_points = sqrt(delta_x ** 2 + delta_y ** 2)"


def module(name, count=8):
    return "".join(FUNCTION.format(name=name, n=n) for n in range(count))


class Stages:
    """Notes the stages of a build."""

    def __init__(self):
        self.names, self.steps = [], 0

    def stage(self, name, total):
        self.names.append(name)

    def step(self, amount=1):
        self.steps += amount


def pinned(tmp_path, packages):
    """A pin list of wheels that lie in the cache already."""
    tables = []
    for name, (split, files) in packages.items():
        path = wheel_folder() / f"{name}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as archive:
            for inside, text in files.items():
                archive.writestr(f"{name}/{inside}", text)
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        facts = {"name": name, "version": "1.0", "file": path.name, "sha256": digest, "licence": "MIT", "split": split}
        tables.append("[[package]]\n" + "\n".join(f'{k} = "{v}"' for k, v in facts.items()))
    pins = tmp_path / "pins.toml"
    pins.write_text("\n".join(tables))
    return pins


@pytest.fixture
def request_(tmp_path):
    (tmp_path / "eval").mkdir()
    (tmp_path / "eval" / "set.json").write_text(f'{{"prompt": "{PLANTED}"}}')
    packages = {
        "alpha": (
            "train",
            {
                "sums.py": module("sum"),
                "copies.py": module("sum") + "# the same again\n",
                "planted.py": module("planted") + PLANTED + "\n",
                "broken.py": module("broken") + "def f(:\n" * 3,
                "held.py": module("held"),
                "empty.py": "",
            },
        ),
        "beta": ("train", {"products.py": module("product")}),
        "gamma": ("validation", {"held.py": module("held")}),
    }
    return CorpusRequest(
        out=tmp_path / "corpus", pins=pinned(tmp_path, packages), eval_data=(tmp_path / "eval",), seed=3
    )


def test_a_corpus_from_wheels(request_):
    stages = Stages()
    manifest = build_corpus(request_, stages)
    assert stages.names == ["download", "filter", "examples: train", "examples: validation", "write"]
    # A training copy of a validation file is what is dropped, whichever package comes first.
    assert manifest["dropped"] == {
        "does not parse": 1,
        "evaluation line": 1,
        "exact copy": 1,
        "length": 1,
        "near copy": 1,
    }
    assert manifest["contaminated"] == [{"package": "alpha", "path": "alpha/planted.py", "line": PLANTED}]
    assert {p["name"]: p["files"] for p in manifest["packages"]} == {"alpha": 1, "beta": 1, "gamma": 1}
    sha256 = hashlib.sha256((DEFAULT_MODEL / "tokenizer.json").read_bytes()).hexdigest()
    corpus = load_corpus(request_.out, sha256)
    assert [d.path for d in corpus.validation_texts()] == ["gamma/held.py"]
    tokenizer = read_tokenizer(DEFAULT_MODEL)
    marks = manifest["marks"]
    assert marks == {"prefix": 11, "suffix": 10, "end": 0, "mask": 16}
    for split, facts in manifest["splits"].items():
        rows = corpus.splits[split]
        assert facts["rows"] == len(rows.tokens) > 0
        assert facts["examples"] == sum(facts["kinds"].values())
        assert facts["tokens"] == int((rows.roles > 0).sum())
        assert (rows.tokens[rows.roles == MIDDLE] == marks["end"]).sum() == facts["whole_middles"]
        text = tokenizer.decode(rows.tokens[rows.roles > 0].tolist())
        assert PLANTED not in text
        assert ("held_" in text) is (split == "validation")


def test_the_same_seed_builds_the_same_corpus(request_, tmp_path):
    def tokens(seed, name):
        request = CorpusRequest(out=tmp_path / name, pins=request_.pins, seed=seed)
        build_corpus(request, Stages())
        return np.array(load_corpus(request.out).splits["train"].tokens)

    one, again, other = tokens(1, "one"), tokens(1, "again"), tokens(2, "other")
    assert np.array_equal(one, again)
    assert not np.array_equal(one, other)


def test_the_number_of_tokens_is_bounded(request_, tmp_path):
    whole = build_corpus(request_, Stages())["splits"]["train"]["tokens"]
    small = CorpusRequest(out=tmp_path / "small", pins=request_.pins, tokens=10)
    assert 10 <= build_corpus(small, Stages())["splits"]["train"]["tokens"] < whole


def test_a_corpus_from_a_repository_in_several_languages(tmp_path):
    root = tmp_path / "mine"
    root.mkdir()
    body = "".join(f"fn add_{n}(a: i32) -> i32 {{\n    let b = a + {n};\n    return b;\n}}\n\n" for n in range(20))
    (root / "lib.rs").write_text(body)
    (root / "main.py").write_text(module("sum"))
    (root / ".env").write_text("KEY=1")
    manifest = build_corpus(CorpusRequest(out=tmp_path / "corpus", repo=root), Stages())
    assert manifest["packages"][0]["files"] == 2
    text = read_tokenizer(DEFAULT_MODEL).decode(
        load_corpus(tmp_path / "corpus").splits["train"].tokens.ravel().tolist()
    )
    assert "let b = a" in text
    assert "value_1 in values" in text


def test_a_corpus_of_nothing_is_refused(tmp_path):
    root = tmp_path / "mine"
    root.mkdir()
    (root / "a.py").write_text("x = 1\n")
    with pytest.raises(InputError, match=r"Nothing is left to train on.*length: 1"):
        build_corpus(CorpusRequest(out=tmp_path / "corpus", repo=root), Stages())
    assert not list((tmp_path / "corpus").iterdir())


def test_a_model_of_another_layout_is_refused(tmp_path):
    from checkpoints import write_checkpoint

    folder = write_checkpoint(tmp_path / "dream", "dream")
    with pytest.raises(InputError, match="suffix and prefix"):
        build_corpus(CorpusRequest(out=tmp_path / "corpus", model=folder, repo=tmp_path), Stages())
