"""`remask train corrector`: from the command line to a head that the engine reads, and with bad input."""

import json

import pytest
from adapters import write_adapter
from checkpoints import write_checkpoint

from remask.cli.main import run_command
from remask.contract.errors import ModelError
from remask.engine.judge.corrector import load_corrector
from remask.engine.models.adapter import adapters_over, digest_of

CODE = "".join(
    f'def total_{n}(values):\n    """The sum of all values, {n} times."""\n    result_{n} = 0\n    for v in values:\n'
    f"        result_{n} += v * {n}\n    return result_{n}\n\n\n"
    for n in range(12)
)
LAYERS, WIDTH = 2, 32


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
    assert (out / "validation.tokens.npy").is_file()
    return out


def arguments(corpus, base, out, *more):
    common = ["train", "corrector", "--corpus", str(corpus), "--model", str(base), "--out", str(out)]
    return [*common, "--held-out", "2", *more]


def load(path, digest):
    return load_corrector(path, base=digest, layers=LAYERS, width=WIDTH)


def test_a_head_and_its_figures(tmp_path, corpus, base, capsys):
    assert run_command(arguments(corpus, base, tmp_path / "head", "--steps", "1")) == 0
    said = capsys.readouterr().out
    assert "average precision" in said
    assert "of true code" in said
    head = load(tmp_path / "head" / "corrector.safetensors", digest_of(base))
    assert head.taps == (0, 1)
    assert f"{head.facts['figures']['drafts']['tokens']:,} held-out draft tokens" in said


def test_json_and_the_same_steps_again_give_the_same_head(tmp_path, corpus, base, capsys):
    said = []
    for name in ("a.safetensors", "b.safetensors"):
        assert run_command(arguments(corpus, base, tmp_path / name, "--steps", "1", "--taps", "1", "--json")) == 0
        said.append(json.loads(capsys.readouterr().out))
    heads = [load(tmp_path / name, digest_of(base)) for name in ("a.safetensors", "b.safetensors")]
    assert said[0]["figures"] == said[1]["figures"] == heads[0].facts["figures"]
    assert said[0]["taps"] == [1]
    assert all((heads[0].parts[n] == heads[1].parts[n]).all() for n in heads[0].parts)


def test_a_head_for_an_adapter_fits_only_the_adapted_model(tmp_path, corpus, base):
    adapter = write_adapter(tmp_path / "adapter")
    out = tmp_path / "head.safetensors"
    assert run_command(arguments(corpus, base, out, "--steps", "1", "--adapter", str(adapter))) == 0
    assert load(out, digest_of(base, adapters_over(base, adapter)))
    with pytest.raises(ModelError, match="other weights"):
        load(out, digest_of(base))


@pytest.mark.parametrize("rank", ["4", "0"])
def test_a_run_that_is_not_exported_can_be_tried(tmp_path, corpus, base, rank, capsys):
    run, out = tmp_path / "run", tmp_path / "head.safetensors"
    small = [a for s in (f"rank={rank}", "rows=1", "block=4", "canvases=2", "causal_rows=32") for a in ("--set", s)]
    train = ["train", "run", "--corpus", str(corpus), "--model", str(base), "--out", str(run), "--steps", "1", *small]
    assert run_command(train) == 0
    assert run_command(arguments(corpus, base, out, "--steps", "1", "--run", str(run))) == 0
    with pytest.raises(ModelError, match="other weights"):
        load(out, digest_of(base))
    other = write_checkpoint(tmp_path / "other", "remask", hidden_size=64)
    assert run_command(arguments(corpus, other, out, "--steps", "1", "--run", str(run))) == 2
    assert "belongs to another model" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "code", "says"),
    [
        ([], 2, "needs an end"),
        (["--steps", "1", "--taps", "a"], 2, "no list of layers"),
        (["--steps", "1", "--taps", "1,0"], 2, "layers from 0 to 1"),
        (["--steps", "1", "--taps", "2"], 2, "layers from 0 to 1"),
        (["--steps", "1", "--corpus", "{none}"], 2, "no corpus"),
        (["--steps", "1", "--model", "{none}"], 2, "no checkpoint"),
        (["--steps", "1", "--adapter", "{none}"], 3, "no whole adapter"),
        (["--steps", "1", "--run", "{none}"], 2, "no finished checkpoint"),
        (["--steps", "1", "--out", "{file}/below"], 5, "cannot be written"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, corpus, base, more, code, says, capsys):
    (tmp_path / "file").write_text("")
    more = [m.format(none=tmp_path / "none", file=tmp_path / "file") for m in more]
    assert run_command(arguments(corpus, base, tmp_path / "head.safetensors", *more)) == code
    assert says in capsys.readouterr().err
    assert sorted(p.name for p in tmp_path.iterdir()) == ["file"]


def test_a_checkpoint_without_a_verifying_pass_is_refused(tmp_path, corpus, capsys):
    dream = write_checkpoint(tmp_path / "dream", "dream")
    assert run_command(arguments(corpus, dream, tmp_path / "head", "--steps", "1")) == 2
    assert "causal verifying passes" in capsys.readouterr().err
