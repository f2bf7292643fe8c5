"""Path settlement: where candidates dispute, the best path through their tokens decides, by Viterbi over the places.

Pure functions of tokens and log-probabilities; knows no model: who asks brings the transition scores it lacks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import pairwise, product

Tokens = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Dispute:
    """A place where texts differ. `options`: what stands there, each once; `after`: what all agree on behind it.

    choice[i], starts[i]: which option text i takes, and where in it the dispute starts.
    """

    options: list[Tokens]
    choice: list[int]
    starts: list[int]
    after: Tokens


@dataclass(frozen=True, slots=True)
class Question:
    """How likely `tokens` are behind the first `kept` tokens of text number `text`: a transition nobody has seen."""

    text: int
    kept: int
    tokens: Tokens


def viterbi(first: Sequence[float], steps: Sequence[Sequence[Sequence[float]]]) -> list[int]:
    """The states of the best path: first[a] + steps[0][a][b] + steps[1][b][c] + ... is largest; of equals the lowest.

    Source: Viterbi 1967.
    """
    scores, back = list(first), []
    for step in steps:
        columns = [[score + row[b] for score, row in zip(scores, step, strict=True)] for b in range(len(step[0]))]
        before = [column.index(max(column)) for column in columns]
        scores = [max(column) for column in columns]
        back.append(before)
    path = [scores.index(max(scores))]
    for before in reversed(back):
        path.append(before[path[-1]])
    return path[::-1]


def disputes(texts: Sequence[Tokens]) -> tuple[Tokens, list[Dispute]]:
    """What all texts begin with, and where they differ, in order.

    Each text is aligned with the first one; tokens that match in all of them are agreed on.
    """
    places = _aligned(texts)
    anchors = [[-1] * len(texts), *places, [len(t) for t in texts]]
    lead: Tokens = ()
    found: list[Dispute] = []
    for before, here in pairwise(anchors):
        parts = [tuple(t[a + 1 : b]) for t, a, b in zip(texts, before, here, strict=True)]
        agreed = texts[0][here[0] : here[0] + 1]
        if len(set(parts)) > 1:
            options = list(dict.fromkeys(parts))
            found.append(Dispute(options, [options.index(p) for p in parts], [a + 1 for a in before], tuple(agreed)))
            continue
        tail = (*parts[0], *agreed)
        if found:
            last = found[-1]
            found[-1] = Dispute(last.options, last.choice, last.starts, (*last.after, *tail))
        else:
            lead = (*lead, *tail)
    return lead, found


def settled(
    texts: Sequence[Tokens],
    sureness: Sequence[Sequence[float]],
    ask: Callable[[list[Question]], list[float]],
) -> Tokens:
    """The tokens of the best path through the texts' tokens.

    sureness: log p of every token of every text. A transition from one dispute's option to the next one's is log p of
    what is agreed between them and of the option; where no text has both, `ask` says it, for all such ones at once.
    """
    lead, places = disputes(texts)
    if not places:
        return texts[0]
    first = [_of_option(places[0], option, sureness) for option in range(len(places[0].options))]
    steps, questions = _transitions(places, sureness)
    answers = iter(ask([q for row in questions for q in row.values()]) if any(questions) else [])
    for step, row in zip(steps, questions, strict=True):
        for (a, b), score in zip(row, answers, strict=False):
            step[a][b] = score
    steps.append([[_behind(places[-1], option, sureness)] for option in range(len(places[-1].options))])
    path = viterbi(first, steps)
    parts = [(*place.options[option], *place.after) for place, option in zip(places, path, strict=False)]
    return (*lead, *(token for part in parts for token in part))


Questions = dict[tuple[int, int], Question]


def _transitions(
    places: Sequence[Dispute], sureness: Sequence[Sequence[float]]
) -> tuple[list[list[list[float]]], list[Questions]]:
    """The scores of all transitions that some text has, and a question for each of the others."""
    steps, questions = [], []
    for here, there in pairwise(places):
        step = [[0.0] * len(there.options) for _ in here.options]
        row: Questions = {}
        for a, b in product(range(len(here.options)), range(len(there.options))):
            pairs = zip(here.choice, there.choice, strict=True)
            both = next((i for i, pair in enumerate(pairs) if pair == (a, b)), None)
            text = here.choice.index(a) if both is None else both
            start = here.starts[text] + len(here.options[a])
            if both is None:
                row[a, b] = Question(text, start, (*here.after, *there.options[b]))
            else:
                step[a][b] = sum(sureness[text][start : there.starts[text] + len(there.options[b])])
        steps.append(step)
        questions.append(row)
    return steps, questions


def _of_option(place: Dispute, option: int, sureness: Sequence[Sequence[float]]) -> float:
    """Log p of an option, in the first text that takes it."""
    text = place.choice.index(option)
    return sum(sureness[text][place.starts[text] : place.starts[text] + len(place.options[option])])


def _behind(place: Dispute, option: int, sureness: Sequence[Sequence[float]]) -> float:
    """Log p of what all agree on behind an option, in the first text that takes it."""
    text = place.choice.index(option)
    start = place.starts[text] + len(place.options[option])
    return sum(sureness[text][start : start + len(place.after)])


def _aligned(texts: Sequence[Tokens]) -> list[list[int]]:
    """The places of the tokens that match in all texts: for each of them one place in every text."""
    maps: list[dict[int, int]] = []
    for text in texts[1:]:
        blocks = SequenceMatcher(None, texts[0], text, autojunk=False).get_matching_blocks()
        maps.append({b.a + i: b.b + i for b in blocks for i in range(b.size)})
    common = [place for place in range(len(texts[0])) if all(place in m for m in maps)]
    return [[place, *(m[place] for m in maps)] for place in common]
