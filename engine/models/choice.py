"""Which checkpoint and which adapter are used: named by a folder or a name in the local hub cache, or remembered.

Never downloads: a name that is not on this machine is an error.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from pathlib import Path

from remask.contract.errors import InputError, StorageError
from remask.contract.places import config_dir

DEFAULT_MODEL = Path(__file__).resolve().parent.parent / "weights"
CHOICE = "model.json"


def find_model(source: str | Path | None) -> Path:
    """The checkpoint's folder: of a path, of `organisation/name` in the hub cache, or the chosen one where None.

    Raises InputError for a source that is not on this machine.
    """
    if source is None:
        return chosen_model() or DEFAULT_MODEL
    if (folder := _folder(str(source))) is not None:
        return folder
    if (cached := _in_hub_cache(str(source), "config.json")) is not None:
        return cached
    raise InputError(
        f"There is no checkpoint folder {source}, and no such name in the local hub cache.",
        advice="Remask downloads nothing: get the checkpoint first (see docs/models.md).",
    )


def find_adapter(source: str | Path | None, model: str | Path | None) -> Path | None:
    """The adapter's folder: of a path or a name in the hub cache, or the one chosen with the model where both are None.

    Raises InputError for a source that is not on this machine.
    """
    if source is None:
        return chosen_adapter() if model is None else None
    found = _folder(str(source)) or _in_hub_cache(str(source), "adapter_config.json")
    if found is None:
        raise InputError(
            f"There is no adapter folder {source}, and no such name in the local hub cache.",
            advice="Remask downloads nothing: get the adapter first (see docs/models.md).",
        )
    return found


def chosen_model() -> Path | None:
    """The folder remembered by `choose_model`; None where none is. Raises InputError where it is gone."""
    return _chosen("model")


def chosen_adapter() -> Path | None:
    """The adapter remembered by `choose_model`; None where none is. Raises InputError where it is gone."""
    return _chosen("adapter")


def choose_model(folder: Path | None, adapter: Path | None = None) -> None:
    """Remember a folder and an adapter for all later calls; None is the default model, and no adapter.

    Raises StorageError.
    """
    path = config_dir() / CHOICE
    chosen = {name: str(place) for name, place in (("model", folder), ("adapter", adapter)) if place is not None}
    try:
        if not chosen:
            path.unlink(missing_ok=True)
            return
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps(chosen), encoding="utf-8")
        os.replace(fresh, path)
    except OSError as error:
        raise StorageError(f"The choice cannot be written to {path}: {error.strerror}.") from None


def known_models() -> list[Path]:
    """The default model, the chosen one, and checkpoints of known families in the local hub cache."""
    found = [DEFAULT_MODEL]
    with suppress(InputError):
        if (chosen := chosen_model()) is not None:
            found.append(chosen)
    return list(dict.fromkeys([*found, *_hub_snapshots()]))


def _chosen(kind: str) -> Path | None:
    try:
        text = (config_dir() / CHOICE).read_text(encoding="utf-8")
    except (OSError, StorageError):
        return None
    back = "'remask model use default' goes back to the default model."
    try:
        chosen = json.loads(text)
        if not isinstance(chosen, dict) or not chosen.keys() & {"model", "adapter"}:
            raise ValueError(kind)
    except ValueError:
        raise InputError("The choice of a model cannot be read.", advice=back) from None
    if kind not in chosen:
        return None
    if (folder := _folder(str(chosen[kind]))) is None:
        raise InputError(f"The chosen {kind} {chosen[kind]} is gone.", advice=back)
    return folder


def _folder(source: str) -> Path | None:
    """The folder of that name, if there is one; an odd name is only not there."""
    try:
        folder = Path(source).expanduser()
        return folder.resolve() if source and folder.is_dir() else None
    except (OSError, RuntimeError, ValueError):
        return None


def _in_hub_cache(name: str, file: str) -> Path | None:
    """The cached snapshot of `organisation/name` that holds a file."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", name):
        return None
    from huggingface_hub import try_to_load_from_cache

    try:
        path = try_to_load_from_cache(name, file)
    except ValueError:  # not a name that the hub could have
        return None
    return Path(path).parent if isinstance(path, str) else None


def _hub_snapshots() -> list[Path]:
    from huggingface_hub import CacheNotFound, scan_cache_dir

    try:
        cache = scan_cache_dir()
    except (CacheNotFound, ValueError, OSError):
        return []
    snapshots = (max(repo.revisions, key=lambda r: r.last_modified) for repo in cache.repos if repo.revisions)
    return sorted(Path(r.snapshot_path) for r in snapshots if (Path(r.snapshot_path) / "config.json").is_file())
