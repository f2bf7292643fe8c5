"""`remask train run`, `plot` and `adapt`: from the command line to files, stopped, resumed, and with bad input."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
from adapters import write_adapter
from checkpoints import write_checkpoint

from remask.cli.main import run_command
from remask.cli.train_run import ALLOCATOR
from remask.engine.training import checkpoints
from remask.engine.training.run import read_log

CODE = "".join(
    f'def total_{n}(values):\n    """The sum of all values, {n} times."""\n    result_{n} = 0\n    for v in values:\n'
    f"        result_{n} += v * {n}\n    return result_{n}\n\n\n"
    for n in range(12)
)
SMALL = [a for s in ("rank=4", "rows=1", "block=4", "canvases=2", "causal_rows=32") for a in ("--set", s)]


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("model") / "base", "remask")


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("code") / "project"
    folder.mkdir()
    for name in "abcdefgh":
        (folder / f"{name}.py").write_text(CODE.replace("total", f"total_{name}"))
    return folder


@pytest.fixture(scope="module")
def corpus(tmp_path_factory, base, repository):
    out = tmp_path_factory.mktemp("corpus") / "corpus"
    assert run_command(["train", "corpus", "--out", str(out), "--repo", str(repository), "--model", str(base)]) == 0
    return out


def arguments(corpus, base, out, *more):
    return ["train", "run", "--corpus", str(corpus), "--model", str(base), "--out", str(out), *SMALL, *more]


def test_a_run_leaves_checkpoints_a_log_and_a_picture(tmp_path, corpus, base, capsys):
    picture = tmp_path / "curves.svg"
    assert run_command(arguments(corpus, base, tmp_path / "run", "--steps", "3", "--plot", str(picture))) == 0
    assert "Step 3," in capsys.readouterr().out
    assert [r["step"] for r in read_log(tmp_path / "run") if r["kind"] == "train"] == [1, 2, 3]
    assert picture.read_text().lstrip().startswith("<?xml")
    facts = checkpoints.load(checkpoints.whole(tmp_path / "run")[-1]).facts
    assert facts["step"] == 3
    assert facts["corpus"]["splits"]["train"]["tokens"] > 0


def test_more_steps_go_on_with_the_run(tmp_path, corpus, base, capsys):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert run_command(arguments(corpus, base, whole, "--steps", "4", "--set", "decay=0")) == 0
    for steps in ("2", "4"):
        assert run_command(arguments(corpus, base, parts, "--steps", steps, "--set", "decay=0")) == 0
    assert "Going on from step 2." in capsys.readouterr().err
    losses = [[r["total"] for r in read_log(run) if r["kind"] == "train"] for run in (whole, parts)]
    assert losses[0] == losses[1]


def test_log_lines_behind_the_checkpoint_are_cut_off(tmp_path, corpus, base):
    run = tmp_path / "run"
    assert run_command(arguments(corpus, base, run, "--steps", "1")) == 0
    log = run / "log.jsonl"
    lost = json.loads(log.read_text().splitlines()[0]) | {"step": 2}
    log.write_text(log.read_text() + json.dumps(lost) + "\n" + '{"step": 3, "ki')
    assert run_command(arguments(corpus, base, run, "--steps", "2")) == 0
    assert [r["step"] for r in read_log(run) if r["kind"] == "train"] == [1, 2]


def test_ctrl_c_finishes_the_step_and_saves(tmp_path, corpus, base):
    run = tmp_path / "run"
    process = subprocess.Popen(
        [sys.executable, "-m", "remask.cli", *arguments(corpus, base, run, "--minutes", "30")],
        env=os.environ | ALLOCATOR,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    wait_until(lambda: (run / "log.jsonl").is_file() and (run / "log.jsonl").read_text().count("\n") > 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0
    assert "Interrupted; the same command goes on from here." in err
    saved = checkpoints.load(checkpoints.whole(run)[-1]).facts["step"]
    assert f"Step {saved}," in out
    assert read_log(run)[-1]["step"] == saved


def wait_until(condition, seconds=120):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_process_with_a_costly_allocator_begins_again(tmp_path, corpus, base):
    environment = {k: v for k, v in os.environ.items() if k not in ALLOCATOR and k != "PYTEST_CURRENT_TEST"}
    command = [sys.executable, "-m", "remask.cli", *arguments(corpus, base, tmp_path / "run", "--steps", "1")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Step 1," in done.stdout


def test_an_adapter_is_trained_further(tmp_path, corpus, base, capsys):
    first, adapter, second = tmp_path / "first", tmp_path / "adapter", tmp_path / "second"
    assert run_command(arguments(corpus, base, first, "--steps", "3", "--set", "decay=0")) == 0
    assert run_command(["train", "export", str(first), "--out", str(adapter), "--base", str(base)]) == 0
    assert run_command(arguments(corpus, base, second, "--steps", "1", "--start", str(adapter), "--set", "lr=0")) == 0
    before, after = (checkpoints.load(checkpoints.whole(run)[-1]).learned for run in (first, second))
    for stem in (name.removesuffix(".lora_A.weight") for name in before if name.endswith("A.weight")):
        was, now = (run[stem + ".lora_B.weight"] @ run[stem + ".lora_A.weight"] for run in (before, after))
        assert (now - was).norm() < 0.02 * was.norm(), stem  # the adapter's rows are int8
        assert after[stem + ".lora_A.weight"].norm(dim=1).tolist() == pytest.approx([1.0] * 4, abs=1e-4)
    more = ("--steps", "1", "--start", str(adapter), "--set", "rank=2")
    assert run_command(arguments(corpus, base, tmp_path / "third", *more)) == 2
    assert "--set rank=4" in capsys.readouterr().err


def test_the_whole_way_from_a_repository_to_a_run(tmp_path, repository, base, capsys):
    command = ["train", "adapt", "--repo", str(repository), "--out", str(tmp_path / "mine"), "--model", str(base)]
    assert run_command([*command, "--minutes", "0.02", *SMALL]) == 0
    assert checkpoints.whole(tmp_path / "mine" / "run")


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ([], "needs an end"),
        (["--steps", "1", "--set", "lr"], "'lr' is no setting"),
        (["--steps", "1", "--set", "speed=1"], "no 'speed'"),
        (["--steps", "1", "--set", "canvases=3"], "come in pairs"),
        (["--steps", "1", "--set", "seed=-1"], "seed is 0 to"),
        (["--steps", "1", "--set", "block=256", "--set", "rows=1", "--corpus", "{none}"], "no corpus"),
        (["--steps", "1", "--model", "{none}"], "no checkpoint"),
        (["--steps", "1", "--device", "tpu"], "not available"),
    ],
)
def test_bad_input_is_one_sentence(tmp_path, corpus, base, more, says, capsys):
    more = [m.format(none=tmp_path / "none") for m in more]
    assert run_command(arguments(corpus, base, tmp_path / "run", *more)) == 2
    said = capsys.readouterr().err
    assert says in said
    assert not checkpoints.whole(tmp_path / "run")


def test_a_corpus_of_another_tokenizer_is_refused(tmp_path, corpus, capsys):
    other = write_checkpoint(tmp_path / "other", "remask")
    tokenizer = json.loads((other / "tokenizer.json").read_text())
    (other / "tokenizer.json").write_text(json.dumps(tokenizer, indent=3))
    assert run_command(arguments(corpus, other, tmp_path / "run", "--steps", "1")) == 2
    assert "another tokenizer" in capsys.readouterr().err


def test_a_checkpoint_that_is_not_read_causally_is_refused(tmp_path, corpus, capsys):
    dream = write_checkpoint(tmp_path / "dream", "dream")
    assert run_command(arguments(corpus, dream, tmp_path / "run", "--steps", "1")) == 2
    assert "causal context" in capsys.readouterr().err


def test_a_picture_needs_a_run_and_a_known_format(tmp_path, corpus, base, capsys):
    assert run_command(["train", "plot", str(tmp_path), str(tmp_path / "a.png")]) == 2
    assert "no log of a training run" in capsys.readouterr().err
    assert run_command(arguments(corpus, base, tmp_path / "run", "--steps", "1")) == 0
    capsys.readouterr()
    assert run_command(["train", "plot", str(tmp_path / "run"), str(tmp_path / "a.docx")]) == 2
    assert ".png, .svg or .pdf" in capsys.readouterr().err
    assert run_command(["train", "plot", str(tmp_path / "run"), str(tmp_path / "no" / "a.png")]) == 5
    capsys.readouterr()
    for nameless in ("curves", "."):
        assert run_command(["train", "plot", str(tmp_path / "run"), str(tmp_path / nameless)]) == 2
        assert "no ending" in capsys.readouterr().err
    assert {p.name for p in tmp_path.iterdir()} == {"run"}


def test_a_picture_for_which_the_disk_has_no_room_leaves_the_old_one(tmp_path, monkeypatch, capsys):
    from matplotlib.figure import Figure

    def full(figure, target):
        target.write_bytes(b"<?xml")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Figure, "savefig", full)
    record = {"kind": "train", "step": 1, "tokens": 9, "total": 4.0, "causal": 2.0, "middle": 1.5, "canvas": 2.5}
    (tmp_path / "log.jsonl").write_text(json.dumps(record) + "\n")
    (tmp_path / "a.svg").write_text("old")
    assert run_command(["train", "plot", str(tmp_path), str(tmp_path / "a.svg")]) == 5
    assert "No space left" in capsys.readouterr().err
    assert (tmp_path / "a.svg").read_text() == "old"
    assert {p.name for p in tmp_path.iterdir()} == {"log.jsonl", "a.svg"}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"a": 1}', "Line 1 of the log"),
        ("3", "Line 1 of the log"),
        ('{"kind": "train", "step": "x"}', "Line 1 of the log"),
        ('{"kind": "train", "step": 1}', "nothing to draw"),
    ],
)
def test_a_log_of_something_else_is_one_sentence(tmp_path, line, says, capsys):
    (tmp_path / "log.jsonl").write_text(f"{line}\n{line}\n")
    assert run_command(["train", "plot", str(tmp_path), str(tmp_path / "a.svg")]) == 2
    assert says in capsys.readouterr().err


def test_a_run_is_exported_with_its_data_and_losses_and_used(tmp_path, corpus, base, capsys):
    run, out = tmp_path / "run", tmp_path / "out"
    assert run_command(arguments(corpus, base, run, "--steps", "2")) == 0
    assert run_command(["train", "export", str(run), "--out", str(out), "--base", str(base), "--name", "mine"]) == 0
    card = (out / "README.md").read_text()
    assert "train, steps 1 to 2" in card
    assert "1 package," in card
    assert "of the machine that exported it" not in card
    assert str(tmp_path) not in card
    capsys.readouterr()
    assert run_command(["model", "show", str(base), "--adapter", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["adapters"] == ["mine"]


def test_what_was_adapted_lies_ready_as_an_adapter_each_time(tmp_path, repository, base, capsys):
    out = tmp_path / "out"
    command = ["train", "adapt", "--repo", str(repository), "--out", str(out), "--model", str(base), *SMALL]
    written = []
    for _ in range(2):
        assert run_command([*command, "--minutes", "0.005"]) == 0
        assert f"use it with --adapter {out / 'adapter'}" in capsys.readouterr().out.replace("\n", "")
        written.append((out / "adapter" / "adapter_model.safetensors").read_bytes())
    assert written[0] != written[1]
    assert run_command(["model", "show", str(base), "--adapter", str(out / "adapter")]) == 0


def test_training_begins_with_what_the_base_carries(tmp_path, corpus, base):
    """What is learned lies over a carried adapter, and is refused where that is gone."""
    carrying = tmp_path / "base"
    shutil.copytree(base, carrying)
    write_adapter(carrying)
    losses = []
    for folder, run in ((base, tmp_path / "plain"), (carrying, tmp_path / "carried")):
        assert run_command(arguments(corpus, folder, run, "--steps", "1")) == 0
        losses.append(read_log(run)[0]["total"])
    assert losses[0] != losses[1]
    export = ["train", "export", str(tmp_path / "carried"), "--out", str(tmp_path / "out"), "--base"]
    assert run_command([*export, str(base)]) == 2
    assert run_command([*export, str(carrying)]) == 0
