"""What the language server and the engine say to each other, as JSON over a local socket.

Text, not tokens: a message knows neither the tokenizer nor LSP. Offsets inside the texts do not occur,
so no unit has to be agreed on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from typing import Any, Self

from remask.contract.errors import InputError

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_DOCUMENT_BYTES = 2_000_000
"""The largest document, in UTF-8 bytes, that is completed at all."""


MAX_CANDIDATES = 8
MAX_CONTEXT_CHARACTERS = 100_000
MAX_DRAFT_CHARACTERS = 20_000
MAX_GUIDE_CHARACTERS = 500
MAX_NAME_CHARACTERS = 4_096  # of a language, a policy, or the path of a snippet


class Extent(StrEnum):
    """How far a completion may reach."""

    AUTO = "auto"  # decided from the text around the cursor
    LINE = "line"
    BLOCK = "block"


class Purpose(StrEnum):
    """What the text is for."""

    COMPLETE = "complete"  # ghost text while someone types: soon, and no more than holds
    FILL = "fill"  # the body of a function, asked for: whole, and worth a wait
    SPECULATE = "speculate"  # what may be asked next, while nothing else is to do


class Reason(StrEnum):
    """Why a completion ended where it did, or why there is none."""

    # the text is what the model wrote
    END = "end"  # the model said that the hole is full
    LINE = "line"  # one line was wanted, and it is complete
    BLOCK = "block"  # the block that was being filled is closed
    SUFFIX = "suffix"  # what follows the cursor was reached
    BUDGET = "budget"  # the token budget is spent
    DEADLINE = "deadline"  # the time is up; the text holds as far as it goes
    CUT = "cut"  # the parser gate cut the text back to the last statement that holds
    # there is no text
    EMPTY = "empty"  # the model has nothing to add
    SYNTAX = "syntax"  # every draft would have added a syntax error
    DUPLICATE = "duplicate"  # all of it stands in the file already
    NO_STUB = "no_stub"  # a body is to be filled, and no empty one is there
    CANCELLED = "cancelled"  # a newer request, or the client, took its place
    STALE = "stale"  # the document moved on while the engine worked
    UNKNOWN_DOCUMENT = "unknown_document"  # the editor never opened it
    DISABLED = "disabled"  # an option says so
    EXCLUDED = "excluded"  # a file that may hold secrets is never read
    LANGUAGE = "language"  # no grammar for this language
    TOO_LARGE = "too_large"
    LOADING = "loading"  # the time was up before the model was loaded
    ENGINE = "engine"  # the engine is not there or failed; the log says more


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds spent on one completion."""

    total: float = 0.0
    prompt: float = 0.0  # running the tokens that the session lacked
    decode: float = 0.0


@dataclass(frozen=True, slots=True)
class PromptCounts:
    """Tokens of the prompt: all of them, those found in the session, those that had to be run, and in how many passes.

    The newest token belongs to neither: every decoding pass starts with it.
    """

    total: int = 0
    cached: int = 0
    run: int = 0
    passes: int = 0


@dataclass(frozen=True, slots=True)
class Snippet:
    """A piece of another file that the model may read.

    `kind` says why: "definition" (of an imported name), "recent" (edited lately), "similar" (to the lines around the
    cursor), "edits" (lines written since the server started, each after `+ `). Half of a character (a lone surrogate),
    as in a file's name that is no UTF-8, is replaced: no tokenizer takes it.
    """

    path: str
    text: str
    kind: str = "definition"

    def __post_init__(self) -> None:
        for name in ("path", "text"):
            value = getattr(self, name)
            if _LONE_SURROGATE.search(value):
                object.__setattr__(self, name, _LONE_SURROGATE.sub("\ufffd", value))


@dataclass(frozen=True, slots=True)
class NameFacts:
    """How many names of the draft were judged, and what share of them nothing defines, 0 to 1.

    `before` is of the draft as the model wrote it, `after` of what is shown; `unknown` are the names left in that.
    """

    judged: int = 0
    before: float = 0.0
    after: float = 0.0
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One more text for the hole, past the gate like the first; a higher `score` is better."""

    text: str
    reason: Reason = Reason.END
    score: float = 0.0


_LONGEST = {
    "language": MAX_NAME_CHARACTERS,
    "policy": MAX_NAME_CHARACTERS,
    "draft": MAX_DRAFT_CHARACTERS,
    "guide": MAX_GUIDE_CHARACTERS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    """Fill the hole between `prefix` and `suffix`, both whole and with line feeds as the only line ends.

    `document` names the session that keeps the KV state (a URI or a path). `candidates` is how many different texts
    are wanted, `context` what may be read of other files, the most useful first; `draft` is what the hole may well
    hold, as its text before an edit, and may only save time; `guide` is a wish in words that the model reads first. An
    engine may ignore all of these. Without `name_facts` the names of a draft are judged only where that can change what
    is written. Raises InputError for values outside their bounds.
    """

    document: str
    language: str
    prefix: str
    suffix: str = ""
    extent: Extent = Extent.AUTO
    policy: str = "default"
    max_tokens: int = 64
    deadline_ms: int = 10_000
    purpose: Purpose = Purpose.COMPLETE
    candidates: int = 1
    context: tuple[Snippet, ...] = ()
    name_facts: bool = True
    draft: str = ""
    guide: str = ""

    def __post_init__(self) -> None:
        for name in ("document", "language", "prefix", "suffix", "policy", "draft", "guide"):
            if not isinstance(getattr(self, name), str):
                raise InputError(f"A completion request needs text in '{name}'.")
            if _LONE_SURROGATE.search(getattr(self, name)):
                raise InputError(f"The text in '{name}' holds half of a character (a lone surrogate).")
        object.__setattr__(self, "extent", _one_of(Extent, "extent", self.extent))
        object.__setattr__(self, "purpose", _one_of(Purpose, "purpose", self.purpose))
        object.__setattr__(self, "context", tuple(_snippet(item) for item in _list("context", self.context)))
        if not isinstance(self.name_facts, bool):
            raise InputError(f"'name_facts' is true or false, not {self.name_facts!r:.60}.")
        _bounded("candidates", self.candidates, 1, MAX_CANDIDATES)
        _bounded("max_tokens", self.max_tokens, 1, 4096)
        _bounded("deadline_ms", self.deadline_ms, 1, 600_000)
        if sum(len(item.text) for item in self.context) > MAX_CONTEXT_CHARACTERS:
            raise InputError(f"The context has more than {MAX_CONTEXT_CHARACTERS} characters.")
        if any(len(item.path) > MAX_NAME_CHARACTERS for item in self.context):
            raise InputError(f"A path in the context has more than {MAX_NAME_CHARACTERS} characters.")
        for name, most in _LONGEST.items():
            if len(getattr(self, name)) > most:
                raise InputError(f"The {name} has more than {most} characters.")
        size = len(self.prefix.encode("utf-8", "replace")) + len(self.suffix.encode("utf-8", "replace"))
        if size > MAX_DOCUMENT_BYTES:
            limit = MAX_DOCUMENT_BYTES / 1e6
            raise InputError(f"The document has {size / 1e6:.1f} MB; Remask completes files up to {limit:.0f} MB.")

    def to_json(self) -> str:
        """The request as one JSON object."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read a request; raises InputError for anything but an object with known, bounded fields."""
        return cls(**_object(cls, text))


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionResult:
    """What the engine wrote into the hole; `text` is empty where `reason` says why there is nothing.

    `others` are further candidates, the best first, none of them equal to `text`.
    """

    text: str
    reason: Reason
    language: str
    tokens: int = 0  # tokens the model wrote, before any trimming
    forwards: int = 0  # every forward pass, the prompt's included
    prompt: PromptCounts = field(default_factory=PromptCounts)
    ms: Timing = field(default_factory=Timing)
    model: str = ""
    policy: str = "default"
    detail: str = ""  # one sentence for the log
    score: float = 0.0
    others: tuple[Candidate, ...] = ()
    names: NameFacts = field(default_factory=NameFacts)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`; raises InputError for unknown fields."""
        known = _known(cls, values)
        known["reason"] = Reason(known["reason"])
        known["prompt"] = PromptCounts(**known.get("prompt", {}))
        known["ms"] = Timing(**known.get("ms", {}))
        names = known.get("names", {})
        known["names"] = NameFacts(**{**names, "unknown": tuple(names.get("unknown", ()))})
        known["others"] = tuple(
            Candidate(str(one["text"]), Reason(one["reason"]), float(one["score"])) for one in known.get("others", ())
        )
        return cls(**known)


def _one_of(kind: type[StrEnum], name: str, value: object) -> StrEnum:
    try:
        return kind(value)  # type: ignore[arg-type]
    except ValueError:
        raise InputError(f"The {name} is one of {', '.join(kind)}, not {value!r}.") from None


def _list(name: str, value: object) -> list[Any] | tuple[Any, ...]:
    if isinstance(value, list | tuple):
        return value
    raise InputError(f"'{name}' is a list.")


def _snippet(value: object) -> Snippet:
    if isinstance(value, Snippet):
        return value
    if isinstance(value, dict) and {"path", "text"} <= value.keys() <= {"path", "text", "kind"}:
        parts = {str(name): part for name, part in value.items() if isinstance(part, str)}
        if len(parts) == len(value):
            return Snippet(**parts)
    raise InputError("A snippet of the context has a path, a text and a kind.")


def _bounded(name: str, value: object, low: int, high: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InputError(f"'{name}' is a whole number from {low} to {high}, not {value!r:.60}.")


def _object(kind: type, text: str | bytes) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError("The request is not JSON.") from None
    if not isinstance(values, dict):
        raise InputError("The request is not a JSON object.")
    return _known(kind, values)


def _known(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    names = {f.name for f in fields(kind)}
    unknown = sorted(set(values) - names)
    if unknown:
        raise InputError(f"Unknown field {unknown[0]!r} in a {kind.__name__}.")
    required = {f.name for f in fields(kind) if not _has_default(f)}
    missing = sorted(required - set(values))
    if missing:
        raise InputError(f"A {kind.__name__} needs {missing[0]!r}.")
    return dict(values)


def _has_default(f: Any) -> bool:
    from dataclasses import MISSING

    return f.default is not MISSING or f.default_factory is not MISSING
