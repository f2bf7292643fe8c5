"""Gets pinned wheels through pip into the cache, and trusts a file only by its hash. Executes nothing of theirs.

Wheels only: for a source archive pip would run the package's own build code.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from remask.contract.errors import InputError, StorageError
from remask.contract.places import cache_dir, private_dir
from remask.engine.training.corpus.pins import Pin

TIMEOUT = 600.0  # seconds a package


def wheel_folder() -> Path:
    """Where downloaded wheels stay, so that a second build needs no network. Raises StorageError."""
    return private_dir(cache_dir() / "wheels")


def fetch(pin: Pin, folder: Path) -> Path:
    """The pinned wheel in `folder`, downloaded where it is not there yet.

    Raises InputError where the package is gone or its hash differs, StorageError where the disk refuses.
    """
    target = folder / pin.file
    if target.is_file() and _sha256(target) == pin.sha256:
        return target
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=".download-") as place:
            _pip(pin, Path(place))
            found = Path(place) / pin.file
            if not found.is_file():
                raise InputError(f"The package index has {pin.name} {pin.version}, but not as {pin.file}.")
            if _sha256(found) != pin.sha256:
                raise InputError(
                    f"The downloaded {pin.file} has another hash than its pin.",
                    advice="Do not use it; check the pin list and the package index.",
                )
            os.replace(found, target)
    except OSError as error:
        raise StorageError(f"{pin.file} cannot be stored in {folder}: {error.strerror or error}.") from error
    return target


def pip_arguments(pin: Pin, place: Path) -> list[str]:
    """The command that downloads this very wheel on any platform: its tags are read from its name."""
    *_, python, abi, platform = pin.file.removesuffix(".whl").split("-")
    command = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "--no-input", "download", "--quiet"]
    command += ["--no-deps", "--only-binary=:all:", "--dest", str(place)]
    command += [f"--platform={tag}" for tag in platform.split(".") if tag != "any"]
    if abi != "none":
        command += ["--implementation=cp", f"--abi={abi}"]
        digits = python.split(".")[0].removeprefix("cp")
        command += [f"--python-version={digits[0]}.{digits[1:] or 0}"]
    return [*command, f"{pin.name}=={pin.version}"]


def _pip(pin: Pin, place: Path) -> None:
    try:
        done = subprocess.run(pip_arguments(pin, place), capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        raise InputError(f"The download of {pin.name} {pin.version} takes too long.") from None
    if done.returncode == 0:
        return
    said = (done.stderr or done.stdout).strip().splitlines()
    errors = [line for line in said if line.startswith("ERROR")] or said[-1:] or ["pip failed without a word"]
    if any("No space left" in line or "Disk quota" in line for line in said):
        raise StorageError(f"There is no room to download {pin.name}.")
    raise InputError(
        f"{pin.name} {pin.version} cannot be downloaded: {errors[0].removeprefix('ERROR: ')[:200].rstrip('.')}.",
        advice="Check the network, or take the package out of the pin list (--pins).",
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
