"""What every pass of a request did, as data: for `remask trace`, and whatever else wants to draw it.

Recording costs nothing where it is off: `Request.trace` is None, and only that is asked. Knows token ids and
texts; knows no file and no terminal. docs/trace.md describes the format. A trace holds source text.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from remask.contract.errors import InputError
from remask.contract.messages import CompletionRequest, CompletionResult, PromptCounts
from remask.engine.decode.events import EVENTS, AnyEvent, Denoised, Judged, Prompted, Remasked, Searched, Verified

if TYPE_CHECKING:
    from torch import Tensor

    from remask.engine.decode.canvas import Canvas

__all__ = [
    *("Denoised", "Judged", "Prompted", "Remasked", "Searched", "Verified"),
    *("AnyEvent", "Record", "Trace", "from_json", "to_json"),
]

T = TypeVar("T")

FORMAT = "remask-trace"
VERSION = 1
NEAR = 2_000  # characters before and after the cursor that a record keeps


@dataclass(slots=True, kw_only=True)
class Record:
    """A request as it went. `prefix` and `suffix` are the text near the cursor, not all of it."""

    document: str
    language: str
    model: str
    policy: str
    prefix: str
    suffix: str
    text: str
    reason: str
    tokens: int
    forwards: int
    ms: float
    events: list[AnyEvent] = field(default_factory=list)


class Trace:
    """Recorder of one request, given to the engine with it. `decode` gives the text of tokens."""

    def __init__(self) -> None:
        self.events: list[AnyEvent] = []
        self.attempt = 0
        self._decode: Callable[[list[int]], str] = lambda tokens: ""
        self._last = time.perf_counter()

    def begin(self, attempt: int, decode: Callable[[list[int]], str]) -> None:
        """What follows belongs to this candidate."""
        self.attempt, self._decode = attempt, decode

    def prompted(self, counts: PromptCounts) -> None:
        """See `Prompted`."""
        self.events.append(Prompted(**self._now(), **asdict(counts)))

    def denoised(self, at: int, canvas: Canvas, predicted: Tensor, probability: Tensor, committed: Tensor) -> None:
        """See `Denoised`: the canvas after the pass, and for each position [B] what it predicted and committed."""
        ids = predicted.tolist()
        self.events.append(
            Denoised(
                **self._now(),
                at=at,
                ids=ids,
                texts=self._texts(ids),
                confidence=_rounded(probability.tolist()),
                open=canvas.open.tolist(),
                committed=committed.nonzero()[:, 0].tolist(),
            )
        )

    def remasked(self, at: int, canvas: Canvas, positions: Sequence[int], judge: str, reason: str) -> None:
        """See `Remasked`; called before the canvas lets go of the tokens."""
        ids = [int(canvas.tokens[place]) for place in positions]
        self.events.append(
            Remasked(
                **self._now(),
                at=at,
                positions=list(positions),
                ids=ids,
                texts=self._texts(ids),
                judge=judge,
                reason=reason,
            )
        )

    def verified(self, at: int, source: str, draft: list[int], taken: list[int], probability: Sequence[float]) -> None:
        """See `Verified`: `taken` is what was accepted of the draft and the pass's own token."""
        self.events.append(
            Verified(
                **self._now(),
                at=at,
                source=source,
                ids=draft,
                texts=self._texts(draft),
                accepted=len(taken) - 1,
                own=taken[-1],
                own_text=self._decode(taken[-1:]),
                confidence=_rounded(probability),
            )
        )

    def judged(self, judge: str, draft: str, kept: str, reason: str, detail: str) -> None:
        """See `Judged`."""
        self.events.append(Judged(**self._now(), judge=judge, draft=draft, kept=kept, reason=reason, detail=detail))

    def searched(self, what: str, text: str, why: str = "", **numbers: Any) -> None:
        """See `Searched`; numbers: `node`, `parent`, `at` and `value`."""
        known = {"node": -1, "parent": -1, "at": 0, "value": 0.0} | numbers
        self.events.append(Searched(**self._now(), what=what, text=text, why=why, **known))

    def record(self, request: CompletionRequest, result: CompletionResult) -> Record:
        """All of it, with what was asked and what came of it."""
        return Record(
            document=request.document,
            language=result.language,
            model=result.model,
            policy=result.policy or request.policy,
            prefix=request.prefix[-NEAR:],
            suffix=request.suffix[:NEAR],
            text=result.text,
            reason=result.reason.value,
            tokens=result.tokens,
            forwards=result.forwards,
            ms=result.ms.total,
            events=list(self.events),
        )

    def _now(self) -> dict[str, Any]:
        now = time.perf_counter()
        ms, self._last = round((now - self._last) * 1e3, 2), now
        return {"attempt": self.attempt, "ms": ms}

    def _texts(self, ids: list[int]) -> list[str]:
        return [self._decode([token]) for token in ids]


def to_json(records: Sequence[Record]) -> dict[str, Any]:
    """The trace file's content as plain JSON values."""
    requests = []
    for record in records:
        values = {name.name: getattr(record, name.name) for name in fields(record)}
        requests.append({**values, "events": [{"kind": one.kind, **asdict(one)} for one in record.events]})
    return {"format": FORMAT, "version": VERSION, "requests": requests}


def from_json(values: object) -> list[Record]:
    """Inverse of `to_json`. Raises InputError for anything that is not such a trace, or of a later version."""
    if not isinstance(values, dict) or values.get("format") != FORMAT:
        raise InputError("It is not a trace of Remask.", advice="Make one with remask complete --trace FILE.")
    version = values.get("version")
    if not isinstance(version, int) or version > VERSION:
        raise InputError(f"It is a trace of version {version!r}, and this Remask reads up to {VERSION}.")
    try:
        return [_record(one) for one in _list(values["requests"])]
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise InputError(f"It is a damaged trace ({type(error).__name__}: {error}).") from None


def _record(values: Mapping[str, Any]) -> Record:
    events = [_event(one) for one in _list(values["events"])]
    return _checked(Record, {**values, "events": []}, events=events)


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError("a list is missing")
    return value


def _event(values: Mapping[str, Any]) -> AnyEvent:
    kind: type[AnyEvent] = EVENTS[values["kind"]]
    return _checked(kind, {name: value for name, value in values.items() if name != "kind"})


def _checked(kind: type[T], values: Mapping[str, Any], **others: Any) -> T:
    """A dataclass from JSON values. Raises TypeError where one has another type; entries unknown here are dropped."""
    hints = get_type_hints(kind)
    known = {one.name: values[one.name] for one in fields(kind)}  # type: ignore[arg-type]
    wrong = sorted(name for name, value in known.items() if name != "events" and not _fits(value, hints[name]))
    if wrong:
        raise TypeError(f"{wrong[0]!r} is of the wrong type")
    return kind(**{**known, **others})


def _fits(value: object, hint: Any) -> bool:
    if get_origin(hint) is list:
        return isinstance(value, list) and all(_fits(one, get_args(hint)[0]) for one in value)
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, hint) and (hint is bool or not isinstance(value, bool))


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 4) for value in values]
