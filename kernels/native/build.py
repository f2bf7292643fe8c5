"""Compiles the C sources beside this file for this very processor, once, and loads them.

Knows nothing of models. Where there is no compiler, or the result does not multiply exactly, there is no library:
the caller falls back to torch.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

SOURCES = ("pass.c", "attention.h", "best.h", "draft.h", "product.h")
COMPILERS = ("cc", "gcc", "clang")
BASE = ("-O3", "-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-shared", "-fPIC")
MACHINE = ("-march=native",)  # tests put other processors here
VARIANTS = (  # the first that compiles: ARM has no such width, and clang on macOS no OpenMP
    ("-mprefer-vector-width=512", "-fopenmp"),
    ("-fopenmp",),
    (),
)
TIMEOUT_S = 120


@cache
def load(folder: Path, machine: tuple[str, ...] = MACHINE) -> ctypes.CDLL | None:
    """The library, from `folder` or compiled into it (about two seconds); None where it cannot be had here.

    `folder` must be private to the user: what lies in it is executed. `machine`: the compiler's options for the
    processor, by default this one's.
    """
    target = folder / f"native-{_key(machine)}.so"
    try:
        if not target.is_file() and not _compile(target, machine):
            return None
        library = ctypes.CDLL(str(target))
        library.remask_scratch.restype = ctypes.c_long
        library.remask_product_scratch.restype = ctypes.c_long
        library.remask_best_scratch.restype = ctypes.c_long
        library.remask_draft_scratch.restype = ctypes.c_long
        library.remask_prepare.restype = ctypes.c_long
        library.remask_kind.restype = ctypes.c_char_p
        return library if library.remask_prepare() == 0 else None
    except (OSError, AttributeError):  # refused by the loader, or not what was asked for
        return None


def _key(machine: tuple[str, ...]) -> str:
    """Names the sources and the processor: a folder may be shared by different machines."""
    here = Path(__file__).parent
    digest = hashlib.sha256(f"{platform.machine()} {platform.libc_ver()} {machine} {BASE} {VARIANTS}".encode())
    for name in SOURCES:
        digest.update((here / name).read_bytes())
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = [platform.processor()]
    digest.update("".join(sorted({line for line in lines if line.startswith(("flags", "Features"))})).encode())
    return digest.hexdigest()[:16]


def _compile(target: Path, machine: tuple[str, ...]) -> bool:
    named = os.environ.get("CC")
    compiler = next((c for c in ([named] if named else COMPILERS) if shutil.which(c)), None)
    if compiler is None:
        return False
    source = str(Path(__file__).parent / SOURCES[0])
    handle, temporary = tempfile.mkstemp(suffix=".so", dir=target.parent)
    os.close(handle)
    try:
        for options in VARIANTS:
            command = [compiler, *BASE, *machine, *options, source, "-o", temporary, "-lm"]
            try:
                done = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
            except subprocess.TimeoutExpired:
                return False
            if done.returncode == 0:
                os.replace(temporary, target)
                return True
        return False
    finally:
        Path(temporary).unlink(missing_ok=True)
