"""One source file on its way into a corpus. Knows no place on disk and no token."""

from __future__ import annotations

from dataclasses import dataclass

TRAIN, VALIDATION = "train", "validation"
SPLITS = (TRAIN, VALIDATION)


@dataclass(frozen=True, slots=True)
class Document:
    """A text of `package` with its path in it (forward slashes); `weight` says how gladly it is sampled."""

    package: str
    path: str
    text: str
    split: str = TRAIN
    weight: float = 1.0


def sampling_weight(document: Document) -> float:
    """`document.weight`, more for files whose functions say what they do, less for test suites.

    A model that fills in functions learns most from those with a docstring; tests repeat themselves.
    """
    text = document.text
    functions = max(1, text.count("def "))
    documented = min(1.0, text.count('"""') / (2 * functions))
    parts = document.path.lower().split("/")
    is_test = any(p in ("test", "tests", "testing") for p in parts) or parts[-1].startswith("test_")
    return document.weight * (0.3 + documented) * (0.25 if is_test else 1.0) * (1.3 if ">>> " in text else 1.0)
