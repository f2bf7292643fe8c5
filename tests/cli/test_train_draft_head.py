"""`remask train draft-head`: from the command line to a head that the engine drafts with, and with bad input."""

import json

import pytest
from checkpoints import write_checkpoint

from remask.cli.main import run_command
from remask.engine.models.adapter import digest_of
from remask.engine.models.draft_head import FILE
from remask.engine.models.model import Model

CODE = "".join(
    f'def total_{n}(values):\n    """The sum of all values, {n} times."""\n    result_{n} = 0\n    for v in values:\n'
    f"        result_{n} += v * {n}\n    return result_{n}\n\n\n"
    for n in range(12)
)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("model") / "base", "remask")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, base):
    repository = tmp_path_factory.mktemp("code")
    for number in range(24):
        (repository / f"file_{number}.py").write_text(CODE.replace("total", f"total_{number}"))
    out = tmp_path_factory.mktemp("corpus") / "corpus"
    assert run_command(["train", "corpus", "--out", str(out), "--repo", str(repository), "--model", str(base)]) == 0
    return out


def arguments(corpus, base, out, *more):
    small = [a for s in ("inner=8", "listed=30", "positions=64", "held_out=128") for a in ("--set", s)]
    common = ["train", "draft-head", "--corpus", str(corpus), "--model", str(base), "--out", str(out)]
    return [*common, *small, *more]


def test_a_head_beside_its_checkpoint_is_used(tmp_path, corpus, capsys):
    base = write_checkpoint(tmp_path / "base", "remask")
    assert Model.load(base).draft_head is None
    assert run_command(arguments(corpus, base, base, "--steps", "2")) == 0
    said = capsys.readouterr().out
    assert "Learned from 128 places" in said
    assert "tokens a pass" in said
    model = Model.load(base)
    assert model.spec.draft_head
    assert len(model.draft_head.tokens) == 30


def test_json_and_the_same_steps_again_give_the_same_head(tmp_path, corpus, base, capsys):
    said = []
    for name in ("a.safetensors", "b.safetensors"):
        assert run_command(arguments(corpus, base, tmp_path / name, "--steps", "2", "--json")) == 0
        said.append(json.loads(capsys.readouterr().out))
    assert said[0]["agreement"] == said[1]["agreement"]
    assert said[0]["base"] == digest_of(base)
    assert (tmp_path / "a.safetensors").stat().st_size == said[0]["bytes"]
    first, again = (Model.load(base, draft_head=tmp_path / n).draft_head for n in ("a.safetensors", "b.safetensors"))
    assert (first.tokens == again.tokens).all()


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        ([], 2, "needs an end"),
        (["--steps", "1", "--set", "depth=3"], 2, "no 'depth'"),
        (["--steps", "1", "--set", "inner"], 2, "no setting"),
        (["--steps", "1", "--corpus", "{none}"], 2, "no corpus"),
        (["--steps", "1", "--model", "{none}"], 2, "no checkpoint"),
        (["--steps", "1", "--adapter", "{none}"], 2, "no adapter"),
        (["--steps", "1", "--out", "{file}/below"], 5, "cannot be written"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, corpus, base, more, code, says, capsys):
    (tmp_path / "file").write_text("")
    more = [m.format(none=tmp_path / "none", file=tmp_path / "file") for m in more]
    assert run_command(arguments(corpus, base, tmp_path / FILE, *more)) == code
    assert says in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


def test_a_checkpoint_without_a_verifying_pass_is_refused(tmp_path, corpus, capsys):
    dream = write_checkpoint(tmp_path / "dream", "dream")
    assert run_command(arguments(corpus, dream, tmp_path / "head", "--steps", "1")) == 2
    assert "verified causally" in capsys.readouterr().err
