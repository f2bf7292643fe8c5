"""Exports: what was learned comes back when they are loaded, the card says where from, half of one is never left."""

import hashlib
import json
import shutil

import pytest
import torch
from adapters import MATRICES, random_pairs, write_adapter
from checkpoints import random_tensors, write_checkpoint
from safetensors.torch import load_file

from remask.contract.errors import InputError, StorageError
from remask.engine.models.adapter import adapters_over, digest_of, read_adapter, read_merged
from remask.engine.models.checkpoint import read_tokenizer
from remask.engine.models.model import Model
from remask.engine.models.read_spec import read_spec
from remask.engine.training import checkpoints, quantised
from remask.engine.training.checkpoints import Checkpoint
from remask.engine.training.export import ExportRequest, export_run
from remask.engine.training.recipe import Recipe

CPU = torch.device("cpu")
CORPUS = {"splits": {"train": {"rows": 70, "tokens": 35_000}}, "packages": 52, "licences": ["BSD-3-Clause", "MIT"]}
EVALUATED = {
    "split": "single-line", "seed": 0, "gate": False, "context": False, "n": 20, "dtype": "int8", "device": "cpu",
    "threads": 2, "interrupted": False,
}  # fmt: skip


@pytest.fixture
def base(tmp_path):
    folder = write_checkpoint(tmp_path / "base", "remask")
    (folder / "README.md").write_text("---\nlicense: mit\nbase_model: org/origin\n---\n")
    return folder


def write_run(folder, learned, *, rank, step=40, **facts):
    facts = {
        "recipe": Recipe(rank=rank).to_dict(),
        "step": step,
        "tokens": 1234567,
        "seconds": 7260.0,
        "threads": 2,
    } | facts
    checkpoints.save(folder, Checkpoint(learned, {"step": torch.tensor(1.0)}, facts))
    records = [
        {"kind": kind, "step": at, "total": 4.0 - at / 40, "causal": 2.0, "middle": 1.5, "canvas": 2.5}
        for at in range(1, step + 3)
        for kind in (("train", "validation") if at % 20 == 0 else ("train",))
    ]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, records)) + '\n{"kind": "tr')
    return folder


def lora_run(folder, seed=0, **facts):
    learned = {}
    for name, (a, b) in random_pairs(seed).items():
        learned |= {f"{name}.lora_A.weight": a, f"{name}.lora_B.weight": b}
    return write_run(folder, learned, rank=3, **facts)


def full_run(folder, base, **facts):
    config = json.loads((base / "config.json").read_text())
    return write_run(folder, random_tensors(config, seed=5), rank=0, **facts)


def weights(folder, *adapters):
    spec = read_spec(folder, read_tokenizer(folder))
    return read_merged(folder, spec.shape, [read_adapter(a) for a in adapters], dtype=torch.float32, device=CPU)


def near(found, wanted, steps=1.0):
    """Whether matrices differ by no more than rounding rows to int8 explains."""
    return all(
        ((found[n] - wanted[n]).abs() <= steps * wanted[n].abs().amax(-1, keepdim=True) / 127 + 1e-4).all()
        for n in wanted
    )


def sums_hold(folder):
    lines = (folder / "SHA256SUMS").read_text().splitlines()
    files = [line.partition("  ")[2] for line in lines]
    assert all(
        hashlib.sha256((folder / f).read_bytes()).hexdigest() == line[:64] for f, line in zip(files, lines, strict=True)
    )
    return files


def left(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_lora_run_becomes_an_adapter(base, tmp_path):
    done = export_run(ExportRequest(run=lora_run(tmp_path / "run"), out=tmp_path / "out", base=base, name="mine"))
    assert (done.form, done.name) == ("adapter", "mine")
    assert left(tmp_path / "out") == ["README.md", "SHA256SUMS", "adapter_config.json", "adapter_model.safetensors"]
    assert sums_hold(tmp_path / "out") == ["adapter_config.json", "adapter_model.safetensors"]
    plain, merged = weights(base), weights(base, tmp_path / "out")
    for name, (a, b) in random_pairs().items():
        error = (merged[f"{name}.weight"] - plain[f"{name}.weight"] - b @ a).abs().mean()
        assert error < 0.02 * (b @ a).abs().mean()
    assert Model.load(base, adapter=tmp_path / "out", dtype="float32").spec.name == "mine"
    stored = load_file(tmp_path / "out" / "adapter_model.safetensors")
    assert {t.dtype for n, t in stored.items() if not n.endswith("_scale")} == {torch.int8}


def test_the_adapter_belongs_to_its_base(base, tmp_path):
    export_run(ExportRequest(run=lora_run(tmp_path / "run"), out=tmp_path / "out", base=base))
    config = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert config["remask"]["base"]["sha256"] == digest_of(base)
    assert (config["base_model_name_or_path"], config["target_modules"]) == ("base", ["down_proj", "q_proj"])
    assert str(tmp_path) not in json.dumps(config)


def test_a_lora_run_merged_is_a_whole_model(base, tmp_path, monkeypatch):
    monkeypatch.setattr(quantised.write_shards, "__defaults__", (20_000,))
    done = export_run(
        ExportRequest(run=lora_run(tmp_path / "run"), out=tmp_path / "out", base=base, name="mine", merge=True)
    )
    assert done.form == "model"
    files = sums_hold(tmp_path / "out")
    assert "tokenizer.json" in files
    assert len(files) > 3
    assert all((tmp_path / "out" / f).stat().st_size < 23_000 for f in files if f.endswith(".safetensors"))
    wanted = weights(base)
    for name, (a, b) in random_pairs().items():
        wanted[f"{name}.weight"] += b @ a
    assert near(weights(tmp_path / "out"), wanted)
    assert Model.load(tmp_path / "out").spec.name == "mine"


def test_a_full_run_is_a_whole_model(base, tmp_path):
    done = export_run(ExportRequest(run=full_run(tmp_path / "run", base), out=tmp_path / "out", base=base))
    assert (done.form, done.name) == ("model", "base-trained")
    assert near(weights(tmp_path / "out"), random_tensors(json.loads((base / "config.json").read_text()), seed=5))
    assert (tmp_path / "out" / "model-00001-of-00001.safetensors").is_file()


def test_what_the_base_carries_is_part_of_it(base, tmp_path):
    """An adapter that was learned over a carried one lies over it; merged, both are in the weights."""
    for path in write_adapter(tmp_path / "carried", random_pairs(1)).iterdir():
        shutil.copy(path, base)
    run = lora_run(tmp_path / "run")
    export_run(ExportRequest(run=run, out=tmp_path / "over", base=base))
    export_run(ExportRequest(run=run, out=tmp_path / "whole", base=base, merge=True))
    assert [a.folder for a in adapters_over(base, tmp_path / "over")] == [base, tmp_path / "over"]
    both = weights(base, base, tmp_path / "over")
    assert near(weights(tmp_path / "whole"), both, steps=6.0)
    assert not (tmp_path / "whole" / "adapter_config.json").exists()


def test_a_run_that_went_on_from_the_carried_adapter_takes_its_place(base, tmp_path):
    plain, bare = weights(base), digest_of(base)
    for path in write_adapter(tmp_path / "carried", random_pairs(1)).iterdir():
        shutil.copy(path, base)
    run = lora_run(tmp_path / "run", base="base", base_sha256=bare)
    export_run(ExportRequest(run=run, out=tmp_path / "instead", base=base))
    export_run(ExportRequest(run=run, out=tmp_path / "whole", base=base, merge=True))
    for name, (a, b) in random_pairs().items():
        plain[f"{name}.weight"] += b @ a
    assert near(weights(tmp_path / "whole"), plain, steps=3.0)
    config = json.loads((tmp_path / "instead" / "adapter_config.json").read_text())
    assert config["remask"]["base"]["sha256"] == bare
    assert [a.folder for a in adapters_over(base, tmp_path / "instead")] == [tmp_path / "instead"]


def test_balanced_pairs_round_better():
    generator = torch.Generator().manual_seed(0)
    a = torch.randn(8, 64, generator=generator) * torch.logspace(2, -2, 8)[:, None]
    b = torch.randn(96, 8, generator=generator) * torch.logspace(-2, 2, 8)
    error = {}
    for name, (x, y) in {"plain": (a, b), "balanced": quantised.balanced(a, b)}.items():
        torch.testing.assert_close(y @ x, b @ a)
        rows = quantised.int8_rows("y", y)
        error[name] = (rows["y"].float() * rows["y_scale"][:, None] @ x - b @ a).norm()
    assert error["balanced"] < error["plain"] / 2


def test_a_row_of_zeros_stays_zero():
    """As in a matrix that was never trained."""
    a, b = quantised.balanced(torch.ones(2, 4), torch.zeros(3, 2))
    rows = quantised.int8_rows("b", b)
    assert not rows["b"].any()
    assert torch.equal(b @ a, torch.zeros(3, 4))


def test_the_card_states_the_run(base, tmp_path):
    facts = {"corpus": CORPUS, "base": "base", "dtype": "bfloat16", "hardware": {"processor": "A chip", "cores": 2}}
    export_run(ExportRequest(run=lora_run(tmp_path / "run", **facts), out=tmp_path / "out", base=base, name="mine"))
    card = (tmp_path / "out" / "README.md").read_text()
    assert card.startswith("---\nlicense: mit\nbase_model: org/origin\n")
    for said in (
        "1,234,567", "| Steps | 40 |", "2 h 1 min", "A chip, 2 cores, threads used: 2, bfloat16", "LoRA of rank 3",
        "52 packages, 70 rows, 35,000 tokens", "BSD-3-Clause, MIT", "`lr` | 0.0007",
        "train, steps 1 to 10 | 3.862", "train, steps 31 to 40 | 3.112", "validation, step 20 | 3.500",
        "validation, step 40 | 3.000", "None were measured",
    ):  # fmt: skip
        assert said in card, said
    assert str(tmp_path) not in card
    assert tmp_path.name not in card


def figures(path, model, rate, policies=("default",), **changes):
    rows = [{"policy": p, "n": 20, "pass_rate": rate, "tpf": 1.5, "failures": {"syntax": 3}} for p in policies]
    path.write_text(json.dumps(EVALUATED | {"model": model} | rows[0] | {"policies": rows} | changes))
    return path


def test_figures_stand_side_by_side(base, tmp_path):
    files = (
        figures(tmp_path / "a.json", "base", 0.175),
        figures(tmp_path / "b.json", "mine", 0.3),
        figures(tmp_path / "c.json", "mine", 0.2, split="multi-line"),
    )
    export_run(ExportRequest(run=lora_run(tmp_path / "run"), out=tmp_path / "out", base=base, figures=files))
    card = (tmp_path / "out" / "README.md").read_text()
    assert "**single-line**, 20 tasks, seed 0\n\n|  | base | mine |" in card
    assert "| pass rate | 17.5% | 30.0% |" in card
    assert "| first failures | syntax 3 | syntax 3 |" in card
    assert "**multi-line**, 20 tasks, seed 0\n\n|  | mine |" in card


def test_policies_are_columns_and_token_reports_are_tables(base, tmp_path):
    report = {
        "split": "validation", "n": 9, "model": "mine", "dtype": "int8", "device": "cpu", "threads": 1, "seed": 0,
        "canvas": 3, "interrupted": False, "ce": 1.25, "ce_prefix": 1.0, "ce_middle": 1.5, "causal_top1": 0.625,
        "blocks": [{"mask_rate": 1.0, "seen": [9, 9, 0], "true": [0.9, 0.5, None], "causal": [0.95, 0.5, None]}],
        "accepted": [0.9, 0.5],
    }  # fmt: skip
    (tmp_path / "t.json").write_text(json.dumps(report))
    files = (figures(tmp_path / "a.json", "mine", 0.3, ("default", "autoregressive")), tmp_path / "t.json")
    export_run(ExportRequest(run=lora_run(tmp_path / "run"), out=tmp_path / "out", base=base, figures=files))
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| mine, default | mine, autoregressive |" in card
    assert "**validation**, 9 examples, seed 0, canvases of 3\n\n|  | mine |" in card
    assert "| canvas with 100% masks agrees with the truth, by position | 0.90 0.50 - |" in card
    assert "| rounds that accept 1, 2, ... draft tokens | 90.0% 50.0% |" in card


@pytest.mark.parametrize("text", [None, "", "{}", "[]", '{"split": "x"}', '{"policies": [3]}'])
def test_figures_that_are_none(base, tmp_path, text):
    if text is not None:
        (tmp_path / "f.json").write_text(text)
    request = ExportRequest(
        run=lora_run(tmp_path / "run"), out=tmp_path / "out", base=base, figures=(tmp_path / "f.json",)
    )
    with pytest.raises(InputError, match=r"f\.json"):
        export_run(request)
    assert not (tmp_path / "out").exists()


def test_a_filled_folder_is_refused(base, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("x")
    with pytest.raises(InputError, match="something in"):
        export_run(ExportRequest(run=lora_run(tmp_path / "run"), out=tmp_path / "out", base=base))
    assert left(tmp_path / "out") == ["mine.txt"]


def test_an_empty_folder_is_taken(base, tmp_path):
    (tmp_path / "out").mkdir()
    export_run(ExportRequest(run=lora_run(tmp_path / "run"), out=tmp_path / "out", base=base))
    assert "adapter_config.json" in left(tmp_path / "out")


def test_an_earlier_adapter_makes_room_where_that_is_wanted(base, tmp_path):
    out, first, second = tmp_path / "out", lora_run(tmp_path / "run"), lora_run(tmp_path / "again", seed=1)
    export_run(ExportRequest(run=first, out=out, base=base, replace=True))
    before = weights(base, out)
    export_run(ExportRequest(run=second, out=out, base=base, replace=True))
    assert not torch.equal(
        weights(base, out)["model.layers.1.mlp.down_proj.weight"], before["model.layers.1.mlp.down_proj.weight"]
    )
    assert left(tmp_path) == ["again", "base", "out", "run"]
    (out / "SHA256SUMS").unlink()
    with pytest.raises(InputError, match="something in"):
        export_run(ExportRequest(run=first, out=out, base=base, replace=True))


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("file", ["README.md", ".safetensors", ".json"])
def test_a_full_disk_leaves_nothing(base, tmp_path, monkeypatch, merge, file):
    request = ExportRequest(run=lora_run(tmp_path / "run"), out=tmp_path / "out", base=base, merge=merge)
    before = left(tmp_path)

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    if file == ".safetensors":
        monkeypatch.setattr(quantised, "save_file", full)
    else:
        write = type(tmp_path).write_text
        monkeypatch.setattr(
            type(tmp_path), "write_text", lambda p, *a, **k: full() if p.name.endswith(file) else write(p, *a, **k)
        )
    with pytest.raises(StorageError, match="No space left"):
        export_run(request)
    assert left(tmp_path) == before


@pytest.mark.parametrize("wrong", ["nothing", "unfinished", "cut", "facts", "format", "empty"])
def test_runs_that_cannot_be_read(base, tmp_path, wrong):
    run = tmp_path / "run"
    if wrong != "nothing":
        lora_run(run)
        (step,) = run.glob("step-*")
        learned = step / "learned.safetensors"
        if wrong == "unfinished":
            (step / "run.json").unlink()
        elif wrong in ("cut", "empty"):
            learned.write_bytes(learned.read_bytes()[: 100 if wrong == "cut" else 0])
        else:
            text = (step / "run.json").read_text()
            (step / "run.json").write_text("{" if wrong == "facts" else text.replace('"format": 1', '"format": 9'))
    with pytest.raises(InputError):
        export_run(ExportRequest(run=run, out=tmp_path / "out", base=base))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("rank", [0, 3])
def test_a_run_of_another_shape_is_refused(base, tmp_path, rank):
    other = write_checkpoint(tmp_path / "other", "remask", hidden_size=48, num_attention_heads=6)
    run = lora_run(tmp_path / "run") if rank else full_run(tmp_path / "run", base)
    with pytest.raises(InputError, match="trained on another model than other"):
        export_run(ExportRequest(run=run, out=tmp_path / "out", base=other))


@pytest.mark.parametrize("facts", [{"base": "elsewhere"}, {"base": "base", "base_sha256": "0" * 64}])
def test_a_run_that_names_another_base_is_refused(base, tmp_path, facts):
    with pytest.raises(InputError, match="trained on another model than base"):
        export_run(ExportRequest(run=lora_run(tmp_path / "run", **facts), out=tmp_path / "out", base=base))


def test_matrices_that_the_base_lacks_are_refused(base, tmp_path):
    learned = {f"model.layers.7.mlp.up_proj.lora_{p}.weight": torch.ones(3, 3) for p in "AB"}
    assert "model.layers.7.mlp.up_proj" not in MATRICES
    with pytest.raises(InputError, match="another model"):
        export_run(ExportRequest(run=write_run(tmp_path / "run", learned, rank=3), out=tmp_path / "out", base=base))


def test_a_base_that_was_not_prepared_is_refused(tmp_path):
    plain = write_checkpoint(tmp_path / "plain", "open-dcoder")
    with pytest.raises(InputError, match="no section of Remask's own"):
        export_run(ExportRequest(run=lora_run(tmp_path / "run"), out=tmp_path / "out", base=plain))
