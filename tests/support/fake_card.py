"""A card that is not there: tensors of the processor that say they are on one, and every wait for it counted.

Inside `Card`, what is made or moved with the device cuda is marked, and so is what comes of it. Counted are the places
where a real card would be waited for: values that are read from it, numbers that are sent from pageable memory, and
operations whose result has a size that only the card knows.
"""

from __future__ import annotations

import torch
from torch.overrides import TorchFunctionMode

CUDA = torch.device("cuda")
READS = {"tolist", "item", "cpu", "numpy", "__bool__", "__int__", "__float__", "__index__"}
SIZED = {"nonzero", "masked_select", "equal", "unique", "argwhere"}


class OnCard(torch.Tensor):
    """A tensor that stands for one on the card."""


class Card(TorchFunctionMode):
    """`waits`: what made the processor wait, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", str(func))
        here = any(isinstance(one, OnCard) for one in _flat((args, kwargs)))
        if name == "__get__" and here and func.__self__ is torch.Tensor.device:
            return CUDA
        if name == "pin_memory":
            return args[0]
        there = _target(args, kwargs)
        if there is not None and name == "to":
            return self._moved(args, kwargs, there, func)
        if there is not None:
            kwargs["device"] = "cpu"
            if name in ("tensor", "as_tensor") and there.type == "cuda":
                self.waits.append(name)
        elif here and (name in READS or name in SIZED or self._indexes(name, args)):
            self.waits.append(name)
        with torch._C.DisableTorchFunctionSubclass():
            out = func(*args, **kwargs)
        marked = there.type == "cuda" if there is not None else here and name not in READS
        return _marked(out) if marked else _plain(out) if name == "cpu" else out

    def _moved(self, args, kwargs, there, func):
        """`Tensor.to` with a device."""
        waits = not (kwargs.get("non_blocking", False) and there.type == "cuda")
        if waits and isinstance(args[0], OnCard) != (there.type == "cuda"):
            self.waits.append("to")
        rest = [one for one in args[1:] if not isinstance(one, torch.device | str)]
        kwargs.pop("device", None)
        with torch._C.DisableTorchFunctionSubclass():
            out = func(args[0], *rest, **kwargs) if rest or "dtype" in kwargs else args[0].detach()
        return _marked(out) if there.type == "cuda" else _plain(out)

    def _indexes(self, name, args) -> bool:
        """Whether an index comes from the processor, or is a mask."""
        if name not in ("__getitem__", "__setitem__"):
            return False
        index = args[1] if isinstance(args[1], tuple) else (args[1],)
        tensors = [one for one in index if isinstance(one, torch.Tensor)]
        foreign = any(not isinstance(one, OnCard) and one.ndim for one in tensors)
        masks = any(one.dtype == torch.bool for one in tensors)
        numbers = any(isinstance(one, OnCard) and one.ndim == 0 for one in tensors)  # what has to be known here
        return foreign or masks or numbers or any(isinstance(one, list | range) for one in index)


def _target(args, kwargs):
    found = kwargs.get("device")
    if found is None:
        found = next((one for one in args[1:] if isinstance(one, torch.device)), None)
    return None if found is None else torch.device(found)


def _flat(value):
    if isinstance(value, dict):
        value = value.values()
    if hasattr(value, "__iter__") and not isinstance(value, torch.Tensor | str):
        for one in value:
            yield from _flat(one)
    else:
        yield value


def _marked(out):
    if isinstance(out, torch.Tensor):
        return out.as_subclass(OnCard)
    if isinstance(out, tuple | list):
        made = [_marked(one) for one in out]
        return type(out)(made) if type(out) in (tuple, list) else tuple(made)
    return out


def _plain(out):
    return out.as_subclass(torch.Tensor)
