"""A corpus comes back as it was written; a missing, foreign, damaged or half-written one is refused."""

import errno
import json
import os

import numpy as np
import pytest

from remask.contract.errors import InputError, StorageError
from remask.engine.training.corpus import store
from remask.engine.training.corpus.documents import Document
from remask.engine.training.corpus.examples import Example
from remask.engine.training.corpus.store import check_writable, load_corpus, write_corpus

WIDTH = 16
EXAMPLES = [
    Example(
        np.arange(1, n + 1, dtype=np.int32) * 1000,
        np.array([1] + [2] * (n - 3) + [3] * 2, np.uint8),
        "line",
        True,
        False,
    )
    for n in (4, 9, 16, 7)
]
ROWS = [[2], [1, 3], [0]]
TEXTS = [Document("p", "a.py", "x = 'ä'\n", "validation")]
MANIFEST = {
    "format": 1,
    "tokenizer_sha256": "t",
    "row_tokens": WIDTH,
    "splits": {"train": {"rows": 3}, "validation": {"rows": 0}},
}


def write(folder, manifest=MANIFEST):
    write_corpus(folder, manifest, {"train": (EXAMPLES, ROWS), "validation": ([], [])}, TEXTS)


@pytest.fixture
def folder(tmp_path):
    write(tmp_path)
    return tmp_path


def test_what_is_written_comes_back(folder):
    corpus = load_corpus(folder, "t")
    train = corpus.splits["train"]
    assert (train.tokens.dtype, train.roles.dtype, train.segments.dtype) == (np.int32, np.uint8, np.uint16)
    assert corpus.manifest == MANIFEST
    for number, row in enumerate(ROWS):
        for segment, index in enumerate(row):
            inside = train.segments[number] == segment
            assert train.tokens[number, inside].tolist() == EXAMPLES[index].tokens.tolist()
            assert train.roles[number, inside].tolist() == EXAMPLES[index].roles.tolist()
        padding = train.segments[number] == 65_535
        assert padding.sum() == WIDTH - sum(len(EXAMPLES[i].tokens) for i in row)
        assert not train.tokens[number, padding].any()
        assert not train.roles[number, padding].any()
    assert corpus.splits["validation"].tokens.shape == (0, WIDTH)
    assert list(corpus.validation_texts()) == TEXTS
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]


def test_a_corpus_may_replace_an_older_one(folder):
    check_writable(folder)
    write(folder, MANIFEST | {"seed": 7})
    assert load_corpus(folder).manifest["seed"] == 7


@pytest.mark.parametrize("name", ["train.tokens.npy", "train.roles.npy", "validation.segments.npy"])
@pytest.mark.parametrize("damage", ["missing", "short", "empty", "other"])
def test_damaged_arrays_are_refused(folder, name, damage):
    path = folder / name
    if damage == "missing":
        path.unlink()
    elif damage == "other":
        np.save(path, np.zeros((5, 5), np.float64))
    else:
        path.write_bytes(path.read_bytes()[: {"short": -1 if path.stat().st_size > 128 else 100, "empty": 0}[damage]])
    with pytest.raises(InputError, match="damaged or missing"):
        load_corpus(folder)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"format": 1}', json.dumps(MANIFEST | {"format": 2}), json.dumps(MANIFEST | {"splits": []})],
)
def test_foreign_manifests_are_refused(folder, text):
    (folder / "corpus.json").write_text(text)
    with pytest.raises(InputError):
        load_corpus(folder)


def test_no_corpus_and_another_tokenizers_are_refused(folder, tmp_path_factory):
    with pytest.raises(InputError, match="another tokenizer"):
        load_corpus(folder, "u")
    with pytest.raises(InputError, match=r"corpus\.json is missing"):
        load_corpus(tmp_path_factory.mktemp("empty"))


def test_damaged_texts_are_refused(folder):
    (folder / "validation.jsonl").write_text('{"path": 1}\n')
    with pytest.raises(InputError, match="validation texts"):
        list(load_corpus(folder).validation_texts())


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("after", [0, 2, 6])
def test_a_failed_write_leaves_no_half_corpus(folder, monkeypatch, failure, after):
    """Before the first file is in place the old corpus is whole; after it, nothing can be loaded."""
    real, done = os.replace, []

    def failing(source, target):
        if len(done) == after:
            raise failure
        done.append(target)
        real(source, target)

    monkeypatch.setattr(store.os, "replace", failing)
    with pytest.raises((StorageError, KeyboardInterrupt)):
        write(folder)
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]
    with pytest.raises(InputError, match="is missing"):
        load_corpus(folder)


def test_a_disk_that_fills_while_arrays_are_made_leaves_the_old_corpus(folder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(store.os, "posix_fallocate", full, raising=False)
    with pytest.raises(StorageError, match="No space left"):
        write(folder, MANIFEST | {"seed": 7})
    assert load_corpus(folder).manifest == MANIFEST
    assert not [p for p in folder.iterdir() if p.name.startswith(".")]


def test_folders_with_other_things_are_not_touched(tmp_path):
    (tmp_path / "thesis.txt").write_text("x")
    with pytest.raises(InputError, match="holds other files"):
        check_writable(tmp_path)
    with pytest.raises(StorageError):
        check_writable(tmp_path / "thesis.txt" / "corpus")
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]
