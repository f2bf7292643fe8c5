"""Where to draw the line between right and wrong tokens, and how good it is. Pure numpy: knows scores and labels.

Shapes: scores [T] float (the higher, the more likely wrong), wrong [T] bool.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from remask.engine.training.batches import Bools

Scores = npt.NDArray[np.floating]
BETA = 0.5  # of the F-score where no line is precise enough: precision counts twice as much as recall


@dataclass(frozen=True, slots=True)
class Line:
    """A threshold (wrong where the score is at least that) and the rule that chose it, in words."""

    threshold: float
    rule: str


def precision_recall(scores: Scores, wrong: Bools, threshold: float) -> tuple[float, float]:
    """Share of the flagged tokens that are wrong, and of the wrong ones that are flagged; 0 where there are none."""
    flagged = scores >= threshold
    hits = float((flagged & wrong).sum())
    return hits / max(1, int(flagged.sum())), hits / max(1, int(wrong.sum()))


def average_precision(scores: Scores, wrong: Bools) -> float:
    """Area under the curve of precision over recall, as steps; the share of wrong tokens for a blind guess."""
    _, precision, recall = _curve(scores, wrong)
    return float((np.diff(recall, prepend=0.0) * precision).sum())


def rank_area(scores: Scores, wrong: Bools) -> float:
    """Chance that a wrong token scores higher than a right one (area under the ROC curve); 0.5 for a blind guess."""
    values, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places] if len(values) else np.zeros(0)
    bad, good = int(wrong.sum()), int((~wrong).sum())
    if not bad or not good:
        return 0.5
    return float((ranks[wrong].sum() - bad * (bad + 1) / 2) / (bad * good))


def choose(scores: Scores, wrong: Bools, precision: float) -> Line:
    """The line of highest recall that is precise enough, else that of the best F-score (beta 0.5)."""
    thresholds, precisions, recalls = _curve(scores, wrong)
    enough = np.flatnonzero(precisions >= precision)
    if len(enough) and recalls[enough[-1]] > 0:
        return Line(float(thresholds[enough[-1]]), f"highest recall with a precision of at least {precision:g}")
    f = (1 + BETA**2) * precisions * recalls / np.maximum(BETA**2 * precisions + recalls, 1e-12)
    return Line(float(thresholds[int(f.argmax())]), f"best F{BETA:g}, for no line has a precision of {precision:g}")


def strict(right: Scores, share: float) -> float:
    """The lowest threshold that flags at most that share of these right tokens."""
    allowed = int(share * len(right))
    highest_first = np.sort(right)[::-1]
    return float(np.nextafter(highest_first[allowed], np.inf)) if allowed < len(right) else 0.0


def _curve(scores: Scores, wrong: Bools) -> tuple[Scores, Scores, Scores]:
    """Thresholds from the highest to the lowest score, equal ones once, with precision and recall at each."""
    order = np.argsort(-scores, kind="stable")
    ranked, hits = scores[order], np.cumsum(wrong[order])
    last = np.flatnonzero(np.append(np.diff(ranked) != 0, True))
    return ranked[last], hits[last] / (last + 1), hits[last] / max(1, int(hits[-1]))
