"""How often drafts are accepted, by their source and place: running figures that fade towards what is usual."""

from __future__ import annotations

USUAL = {
    "lookup-1": (0.25, 0.5),
    "lookup-2": (0.5, 0.65),
    "lookup-3": (0.75, 0.8),
    "guess": (0.8, 0.9),
    "head": (0.5, 0.5),
    "single_pass": (0.5, 0.5),
    "canvas": (0.95, 0.5),
}
"""What is assumed of a source's first token and of every later one; measured with the default model."""

UNKNOWN = (0.6, 0.6)
WEIGHT = 6.0  # observations that the assumption is worth
FADE = 0.995  # a round; so that a source that did badly is tried again some day


class Rates:
    """p(place i is accepted | all before it are), per kind of draft."""

    def __init__(self) -> None:
        self._tried: dict[str, list[float]] = {}
        self._kept: dict[str, list[float]] = {}

    def seen(self, kind: str, drafted: int, accepted: int) -> None:
        """One draft of `drafted` tokens of which the first `accepted` were kept."""
        for counts in (*self._tried.values(), *self._kept.values()):
            counts[:] = [c * FADE for c in counts]
        tried, kept = self._tried.setdefault(kind, []), self._kept.setdefault(kind, [])
        for counts in (tried, kept):
            counts += [0.0] * (drafted - len(counts))
        for place in range(min(accepted + 1, drafted)):
            tried[place] += 1.0
            kept[place] += place < accepted

    def rate(self, kind: str, place: int) -> float:
        """The estimate for one place: (kept + w * usual) / (tried + w)."""
        first, later = USUAL.get(kind, UNKNOWN)
        usual = later if place else first
        tried, kept = self._tried.get(kind, []), self._kept.get(kind, [])
        if place >= len(tried):
            return usual
        return (kept[place] + WEIGHT * usual) / (tried[place] + WEIGHT)

    def survival(self, kind: str, length: int) -> list[float]:
        """p(the first k tokens are all accepted) for k = 0 .. length."""
        values = [1.0]
        for place in range(length):
            values.append(values[-1] * self.rate(kind, place))
        return values
