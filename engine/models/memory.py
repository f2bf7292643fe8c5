"""What to do when a device has no memory left: read less at a time, and say so in the end.

Knows torch's errors; knows no model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from remask.contract.errors import ModelError

ADVICE = "Use a smaller model or a shorter context, or close what else uses the memory."

_BARE = re.compile(r"can't allocate memory|not enough memory|CUDA out of memory|std::bad_alloc")  # the CPU's allocator
_SIZES = re.compile(r"(?:tried|Tried) to allocate ([\d.]+ ?\w+)")
_FREE = re.compile(r"of which ([\d.]+ \w+) is free")


def is_shortage(error: BaseException) -> bool:
    """Whether an error says that memory is short."""
    bare = isinstance(error, RuntimeError) and _BARE.search(str(error))
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or bool(bare)


def smaller(error: Exception, count: int, step: int = 1) -> int:
    """How many tokens to read instead of `count`, which were too many: half, in whole steps, with caches emptied.

    Raises `error` itself where it says something else, ModelError where `count` is one step already.
    """
    if not is_shortage(error):
        raise error
    if count <= step:
        raise shortage(error, count) from None
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
    return max(step, count // 2 // step * step)


def shortage(error: BaseException, count: int) -> ModelError:
    """The error for a user, with the sizes that torch gives."""
    asked, free = _SIZES.search(str(error)), _FREE.search(str(error))
    sizes = f" ({asked[1]} more{f', of which {free[1]} is free' if free else ''})" if asked else ""
    return ModelError(f"A pass over {count} tokens needs more memory than the device has free{sizes}.", advice=ADVICE)


@contextmanager
def shortage_said(count: int) -> Iterator[None]:
    """Turns torch's errors of a pass over `count` tokens into one for a user."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_shortage(error):
            raise
        raise shortage(error, count) from None
