"""What this processor is good at, and how many threads it is asked to use.

Knows no model. What it says decides the precision that `auto` stands for.
"""

from __future__ import annotations

import logging
import os
import platform
from functools import cache

import torch

from remask.contract.errors import InputError

log = logging.getLogger(__name__)

THREADS = "REMASK_THREADS"
MOST_THREADS = 1024


@cache
def has_bfloat16() -> bool:
    """Whether bfloat16 products run natively; elsewhere they are emulated and slower than float32."""
    if platform.machine().lower() not in {"x86_64", "amd64"}:
        return False
    return bool(torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported())


def set_threads() -> None:
    """Take the number of threads from REMASK_THREADS where it is set, as many as there are cores at most.

    Raises InputError for nonsense.
    """
    wanted = os.environ.get(THREADS, "").strip()
    if not wanted:
        return
    if not wanted.isascii() or not wanted.isdigit() or not 1 <= int(wanted[:9]) <= MOST_THREADS:
        raise InputError(
            f"{THREADS} is a number from 1 to {MOST_THREADS}, not {wanted!r}.",
            advice="The number of the machine's cores is a good one; leave it out to take that.",
        )
    cores = os.cpu_count() or 1
    if int(wanted) > cores:  # they would wait for each other at every product
        log.warning("%s is %s, but there are %d cores: Remask takes these.", THREADS, wanted, cores)
    torch.set_num_threads(min(int(wanted), cores))
