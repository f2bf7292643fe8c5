"""Which corrector head belongs to a loaded model: a named file, or the one beside its adapter or its checkpoint."""

from __future__ import annotations

import logging
from pathlib import Path

from remask.contract.errors import InputError, ModelError
from remask.engine.judge.corrector import FILE, Corrector, load_corrector
from remask.engine.models.adapter import adapters_over, digest_of
from remask.engine.models.choice import find_adapter, find_model
from remask.engine.models.model import Model
from remask.engine.models.spec import Regime

log = logging.getLogger(__name__)


def corrector_for(model: Model, source: Path | None, adapter: Path | None, named: Path | None) -> Corrector | None:
    """The head for a model that was loaded from `source` and `adapter`; None where there is none.

    `named` is a file, or a folder that holds `corrector.safetensors`. Raises ModelError for a named one that does not
    fit and InputError where the model has no causal passes; one that is only found is then left alone, with a warning.
    """
    folder = find_model(source)
    adapters = adapters_over(folder, find_adapter(adapter, source))
    if named is not None:
        path: Path | None = named / FILE if named.is_dir() else named
    else:
        places = [*(a.folder for a in reversed(adapters)), folder]
        path = next((place / FILE for place in places if (place / FILE).is_file()), None)
    if path is None:
        return None
    spec = model.spec
    if spec.regime is not Regime.CAUSAL or not spec.verifies:
        if named is None:
            return None
        raise InputError(f"A corrector head reads causal verifying passes, and {spec.name} has none.")
    try:
        base, shape = digest_of(folder, adapters), spec.shape
        return load_corrector(path, base=base, layers=shape.layers, width=shape.width, device=model.transformer.device)
    except ModelError as error:
        if named is not None:
            raise
        log.warning("The corrector head is not used: %s", error)
        return None
