"""The list of packages that a corpus is made of: exact versions, hashes, licences. Knows no network and no archive."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from remask.contract.errors import InputError
from remask.engine.training.corpus.documents import SPLITS, TRAIN

DEFAULT_PINS = "pins.toml"
STDLIB = "python"
ALLOWED_LICENCES = frozenset(
    {"MIT", "MIT-0", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0", "PSF-2.0", "ISC", "0BSD", "Unlicense", "CC0-1.0"}
)


@dataclass(frozen=True, slots=True)
class Pin:
    """One wheel: `file` is its name, `sha256` its hash, `cap_mb` the most text taken from it, `weight` how gladly.

    The pin named "python" stands for the standard library of the interpreter that runs: no file, no hash.
    """

    name: str
    version: str
    file: str
    sha256: str
    licence: str
    split: str = TRAIN
    cap_mb: float = 4.0
    weight: float = 1.0


def read_pins(path: Path | None = None) -> tuple[Pin, ...]:
    """The pins of a TOML file, by default Remask's own. Raises InputError for anything out of place."""
    try:
        text = path.read_text("utf-8") if path else _own_list()
        entries = tomllib.loads(text)["package"]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"The pin list {path} cannot be read: {error}.") from None
    except (tomllib.TOMLDecodeError, KeyError) as error:
        raise InputError(f"The pin list {path or DEFAULT_PINS} is not a TOML list of [[package]]: {error}.") from None
    if not isinstance(entries, list) or not entries:
        raise InputError(f"The pin list {path or DEFAULT_PINS} names no package.")
    return tuple(_pin(entry) for entry in entries)


def is_permissive(licence: str) -> bool:
    """Whether every part of an SPDX expression is on the allow-list; of alternatives, one is enough."""
    return any(
        all(part.strip() in ALLOWED_LICENCES for part in re.split(r"\bAND\b", choice.strip(" ()")))
        for choice in re.split(r"\bOR\b", licence)
    )


def _own_list() -> str:
    return resources.files("remask.engine.training.corpus").joinpath(DEFAULT_PINS).read_text("utf-8")


def _pin(entry: Any) -> Pin:
    try:
        pin = Pin(**entry)
    except TypeError as error:
        raise InputError(f"A pin has a missing or unknown entry: {error}.") from None
    kinds = {name: (int, float) if name in ("cap_mb", "weight") else (str,) for name in entry}
    if not all(isinstance(entry[name], kind) for name, kind in kinds.items()) or min(pin.cap_mb, pin.weight) <= 0:
        raise InputError(f"The pin {pin.name!r} has an entry of the wrong kind.")
    if pin.split not in SPLITS:
        raise InputError(f"The pin {pin.name} is for the split {pin.split!r}; it is one of {', '.join(SPLITS)}.")
    if not is_permissive(pin.licence):
        raise InputError(
            f"The licence of {pin.name}, {pin.licence!r}, is not on the list of permissive ones.",
            advice=f"Allowed: {', '.join(sorted(ALLOWED_LICENCES))}.",
        )
    if pin.name != STDLIB:
        _check_file(pin)
    return pin


def _check_file(pin: Pin) -> None:
    if not re.fullmatch(r"[\w.+!-]+\.whl", pin.file) or len(pin.file.removesuffix(".whl").split("-")) not in (5, 6):
        raise InputError(
            f"The pin {pin.name} names {pin.file!r}, which is not a wheel.",
            advice="Source archives run code when pip looks at them; pin a wheel.",
        )
    if not re.fullmatch(r"[0-9a-f]{64}", pin.sha256):
        raise InputError(f"The pin {pin.name} has no sha256 of 64 hexadecimal digits.")
