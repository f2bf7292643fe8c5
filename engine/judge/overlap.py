"""What of a draft stands after the cursor already. Knows the two texts; which reading holds is the gate's to say."""

from __future__ import annotations

CLOSERS = frozenset(")]}>\"'`:;,")

MAX_SHORTER = 8
"""Places at most where a draft is looked at as one that ran on: each costs a judgement."""


def without_overlap(draft: str, suffix: str) -> list[str]:
    """The readings of a draft to try, best first: as it is, and without a tail that repeats the rest of the line.

    A repeated tail of more than closing marks is a repetition for sure, so it is tried first; closing
    marks alone (`)`) may belong to the draft (`str(x)` inside `print(|)`), so the whole draft comes first.
    """
    rest = suffix.partition("\n")[0].rstrip()
    if not rest.strip():
        return [draft]
    head, newline, _ = draft.partition("\n")
    if newline:
        return [draft]
    tail = _repeated(head.rstrip(), rest)
    if not tail:
        return [draft]
    shortened = head.rstrip()[: -len(tail)]
    return [draft, shortened] if set(tail.strip()) <= CLOSERS else [shortened, draft]


def up_to_rest(draft: str, suffix: str) -> list[str]:
    """The beginnings of a draft up to where it writes itself the closing marks that stand behind the cursor.

    Those first after which most of the rest of the line follows in the draft, of these the shortest.
    """
    rest = suffix.partition("\n")[0].rstrip()
    if rest[:1] not in CLOSERS:
        return []
    places = [at for at in range(len(draft)) if draft[at] == rest[0] and draft[:at].strip()]
    places.sort(key=lambda at: _shared(draft[at:], rest), reverse=True)
    return [draft[:at] for at in places[:MAX_SHORTER]]


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    pairs = zip(one, other, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _repeated(line: str, rest: str) -> str:
    """The longest end of `line` that is the whole of `rest`, or where `rest` is closing marks only, a start of it."""
    if line.endswith(rest):
        return rest
    if set(rest) - CLOSERS:
        return ""
    return next((rest[:n] for n in range(len(rest) - 1, 0, -1) if line.endswith(rest[:n])), "")
