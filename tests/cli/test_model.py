"""`remask model`, and a completion by `remask complete --model` with a random checkpoint of every family."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from adapters import random_pairs, write_adapter
from checkpoints import PUBLISHED, write_checkpoint

from remask.cli.main import run_command

SOURCE = "def area(width, height):\n    return width * \n\n\nprint(area(2, 3))\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "area.py"
    path.write_text(SOURCE)
    return str(path)


def complete(capsys, file, folder, *options):
    arguments = ["complete", file, "--at", "2:20", "--model", str(folder), "--json", "--max-tokens", "12", *options]
    assert run_command([*arguments, "--dtype", "float32"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("family", PUBLISHED)
def test_every_family_completes_a_file(tmp_path, capsys, file, family):
    """Nonsense text, right shape; a warm session writes what a cold one does, and no cache is claimed where none is."""
    folder = write_checkpoint(tmp_path / family, family)
    cold, *_, warm = complete(capsys, file, folder, "--no-cache", "--typed", " x")
    (again,) = complete(capsys, file, folder, "--no-cache")
    assert cold["model"] == family
    assert cold["tokens"] <= 12
    assert cold["forwards"] >= 1
    assert cold["text"] == again["text"]
    assert cold["prompt"]["cached"] == 0
    bidirectional = family in ("dream", "dreamon", "open-dcoder", "tiny-a2d-mdlm")
    assert (warm["prompt"]["cached"] > 0) is not bidirectional


def test_diffusion_gemma_completes_a_file(tmp_path, capsys, file):
    pytest.importorskip("transformers", minversion="5.24")
    from gemma import write_gemma

    folder = write_gemma(tmp_path / "gemma")
    capsys.readouterr()
    cold, *_, warm = complete(capsys, file, folder, "--no-cache", "--typed", " x")
    assert (cold["model"], cold["policy"], cold["prompt"]["cached"]) == ("gemma", "entropy_bound", 0)
    assert cold["tokens"] <= 12
    assert warm["prompt"]["total"] > 0


def test_a_damaged_gemma_checkpoint_is_one_sentence(tmp_path, capsys, file):
    pytest.importorskip("transformers", minversion="5.24")
    from gemma import write_gemma

    folder = write_gemma(tmp_path / "gemma")
    (folder / "model.safetensors").write_bytes(b"\0" * 100)
    capsys.readouterr()
    assert run_command(["complete", file, "--at", "2:20", "--model", str(folder)]) == 3
    assert capsys.readouterr().err.strip().count("\n") == 0


@pytest.mark.parametrize("family", ["sdar", "wedlm", "fast-dllm-v2"])
def test_a_second_call_starts_warm_and_writes_the_same(tmp_path, capsys, file, family):
    folder = write_checkpoint(tmp_path / family, family)
    (first,) = complete(capsys, file, folder)
    (second,) = complete(capsys, file, folder)
    assert second["prompt"]["cached"] > 0
    assert (second["text"], second["tokens"]) == (first["text"], first["tokens"])


def test_a_policy_that_verifies_is_refused_where_the_weights_cannot(tmp_path, capsys, file):
    folder = write_checkpoint(tmp_path / "sdar", "sdar")
    assert run_command(["complete", file, "--at", "2:20", "--model", str(folder), "--policy", "autoregressive"]) == 2
    assert "was not trained to be read causally" in capsys.readouterr().err


def test_show_names_family_size_memory_and_licence(tmp_path, capsys):
    folder = write_checkpoint(tmp_path / "mine", "wedlm")
    (folder / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Mine\n")
    assert run_command(["model", "show", str(folder), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["family"], facts["licence"], facts["verifies"]) == ("wedlm", "apache-2.0", True)
    assert facts["parameters"] > 20_000
    assert facts["memory"] > 2 * facts["parameters"]
    assert facts["parameters"] < facts["memory_eight_bits"] < facts["memory"]
    assert facts["fits"] is True


def test_use_is_remembered_and_undone(tmp_path, capsys, file):
    folder = write_checkpoint(tmp_path / "mine", "sdar")
    assert run_command(["model", "use", str(folder)]) == 0
    assert run_command(["model", "show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["name"] == "mine"
    assert run_command(["model", "list", "--json"]) == 0
    used = {m["name"]: m["used"] for m in json.loads(capsys.readouterr().out)["models"]}
    assert used["mine"] is True
    assert run_command(["model", "use", "default"]) == 0
    assert run_command(["model", "show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["name"].startswith("remask")


def test_what_the_list_shows_and_default_are_names_as_well(tmp_path, capsys):
    assert run_command(["model", "use", str(write_checkpoint(tmp_path / "mine", "sdar"))]) == 0
    assert run_command(["model", "list", "--json"]) == 0
    default, mine = (m["name"] for m in json.loads(capsys.readouterr().out.splitlines()[-1])["models"][:2])
    for source, name in (("default", default), (default, default), (mine, mine)):
        assert run_command(["model", "show", source, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["name"] == name
    assert run_command(["model", "use", default]) == 0
    assert run_command(["model", "show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["name"] == default


def test_a_name_in_the_hub_cache_is_found_and_nothing_is_downloaded(tmp_path, capsys, monkeypatch):
    cache = tmp_path / "hub"
    snapshot = cache / "models--org--tiny" / "snapshots" / "abc123"
    write_checkpoint(snapshot, "sdar")
    (cache / "models--org--tiny" / "refs").mkdir()
    (cache / "models--org--tiny" / "refs" / "main").write_text("abc123")
    program = (
        "import sys; from remask.engine.models.choice import find_model, known_models; "
        "print(find_model('org/tiny')); print(*known_models(), sep='\\n')"
    )
    environment = {"HF_HUB_CACHE": str(cache), "HF_HUB_OFFLINE": "0", "PATH": "", "REMASK_CONFIG_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)
    lines = done.stdout.splitlines()
    assert lines[0] == str(snapshot)
    assert str(snapshot) in lines[2:]


@pytest.mark.parametrize("source", ["nowhere", "org/absent", ""])
def test_a_source_that_is_not_here_is_one_sentence(source, capsys):
    assert run_command(["model", "use", source or "/nonexistent"]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "downloads nothing" in error


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="needs Linux's peak counter")
def test_loading_never_holds_two_copies_of_the_weights(tmp_path):
    """Peak memory of loading a checkpoint of about 150 MB against the weights' own size.

    A child's ru_maxrss starts at its parent's peak, so the kernel's own counter is reset instead.
    """
    folder = write_checkpoint(
        tmp_path / "big", "sdar", hidden_size=1024, intermediate_size=4096, num_hidden_layers=2, vocab_size=8192,
        num_attention_heads=8, num_key_value_heads=8, head_dim=128,
    )  # fmt: skip
    size = (folder / "model.safetensors").stat().st_size
    program = (
        "import re, torch\n"
        "from remask.engine.models.model import Model\n"
        "def status(name): return int(re.search(name + r':\\s+(\\d+)', open('/proc/self/status').read())[1]) * 1024\n"
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "before = status('VmRSS')\n"
        f"Model.load({str(folder)!r}, dtype='float32')\n"
        "print(status('VmHWM') - before)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert 0.9 * size < int(done.stdout) < 1.6 * size


@pytest.mark.parametrize("source", ["../x", "a--b/c", "~nobody-here/x", "a" * 5000])
def test_odd_sources_are_one_sentence(source, capsys):
    assert run_command(["model", "use", source]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_chosen_model_that_vanished_is_said_not_replaced(tmp_path, capsys, file):
    folder = write_checkpoint(tmp_path / "mine", "sdar")
    assert run_command(["model", "use", str(folder)]) == 0
    shutil.rmtree(folder)
    assert run_command(["complete", file, "--at", "2:20"]) == 2
    assert "is gone" in capsys.readouterr().err
    assert run_command(["model", "list"]) == 0


def test_an_adapter_changes_what_is_written_and_the_cache_keeps_both_apart(tmp_path, capsys, file):
    folder, adapter = write_checkpoint(tmp_path / "mine", "remask"), write_adapter(tmp_path / "adapter")
    (plain,) = complete(capsys, file, folder)
    (adapted,) = complete(capsys, file, folder, "--adapter", str(adapter))
    (again,) = complete(capsys, file, folder, "--adapter", str(adapter))
    (plain_again,) = complete(capsys, file, folder)
    assert (plain["model"], adapted["model"]) == ("mine", "mine+adapter")
    assert adapted["prompt"]["cached"] == 0 < again["prompt"]["cached"]
    assert (plain["text"], adapted["text"]) == (plain_again["text"], again["text"])


def test_show_says_which_adapter_is_merged(tmp_path, capsys):
    folder, adapter = write_checkpoint(tmp_path / "mine", "remask"), write_adapter(tmp_path / "adapter")
    assert run_command(["model", "show", str(folder), "--adapter", str(adapter), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["name"], facts["adapters"]) == ("mine+adapter", ["adapter"])
    assert run_command(["model", "show", str(folder)]) == 0
    assert "adapter     none" in capsys.readouterr().out


def test_an_adapter_is_remembered_with_its_model(tmp_path, capsys, file):
    folder, adapter = write_checkpoint(tmp_path / "mine", "remask"), write_adapter(tmp_path / "adapter")
    assert run_command(["model", "use", str(folder), "--adapter", str(adapter)]) == 0
    assert "Using mine+adapter" in capsys.readouterr().out
    assert run_command(["complete", file, "--at", "2:20", "--json", "--max-tokens", "4", "--dtype", "float32"]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == "mine+adapter"
    assert run_command(["model", "show", str(folder), "--json"]) == 0  # named: without what was chosen for another
    assert json.loads(capsys.readouterr().out)["name"] == "mine"
    assert run_command(["model", "list", "--json"]) == 0
    used = [m for m in json.loads(capsys.readouterr().out)["models"] if m["used"]]
    assert [m["name"] for m in used] == ["mine+adapter"]
    assert run_command(["model", "use", str(folder)]) == 0
    assert run_command(["model", "show", "--json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["name"] == "mine"


def test_an_adapter_that_vanished_or_does_not_fit_is_one_sentence(tmp_path, capsys, file):
    folder, adapter = write_checkpoint(tmp_path / "mine", "remask"), write_adapter(tmp_path / "adapter")
    assert run_command(["model", "use", str(folder), "--adapter", str(adapter)]) == 0
    shutil.rmtree(adapter)
    assert run_command(["complete", file, "--at", "2:20"]) == 2
    assert "is gone" in capsys.readouterr().err
    assert run_command(["complete", file, "--at", "2:20", "--model", str(folder), "--adapter", str(adapter)]) == 2
    assert "no adapter folder" in capsys.readouterr().err
    wide = {name.replace("layers.1", "layers.9"): pair for name, pair in random_pairs().items()}
    write_adapter(adapter, wide)
    assert run_command(["complete", file, "--at", "2:20", "--model", str(folder), "--adapter", str(adapter)]) == 3
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert "no matrix of this model" in error


def test_the_default_model_is_not_adapted_by_what_does_not_fit_it(tmp_path, capsys):
    assert run_command(["model", "use", "default", "--adapter", str(tmp_path)]) == 3
    assert "no whole adapter" in capsys.readouterr().err
