"""Another engine beside this one: llama.cpp's server, asked over HTTP for the same tokens behind the same prompts.

Both sides take turns, prompt by prompt, greedily and from a cold cache. The server is the user's own and runs whatever
checkpoint it was given; how often it writes the same first token tells whether that was the same one.
"""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import torch

from remask.contract.errors import EngineError, InputError
from remask.contract.messages import Reason
from remask.engine.decode.loop import Decoder
from remask.engine.decode.policies import policy_named
from remask.engine.decode.policy import Policy
from remask.engine.decode.request import Budget, Request
from remask.engine.decode.stop import StopRules
from remask.engine.evaluation.bench import BASELINE, SOURCES, sample_holes
from remask.engine.models.model import Model
from remask.engine.prompt import Prompt
from remask.engine.session import Session

Clock = Callable[[], float]
LENGTHS = (500, 2000)  # tokens of a prompt
TIMEOUT_S = 600.0
OTHER = "server"


@dataclass(frozen=True, slots=True)
class SideRow:
    """One side at one length of prompt: medians over the prompts.

    first_ms: from a cold prompt to its first token. tok_s: tokens a second behind the prompt, of all prompts together.
    agreed: share of prompts whose first token is that of one token a pass; ratio: tok_s over the server's.
    """

    length: int
    side: str
    tokens: int
    first_ms: float
    tok_s: float
    ms_per_token: float
    agreed: float
    ratio: float


@dataclass(slots=True)
class SideReport:
    """What `remask bench against` prints."""

    model: str
    dtype: str
    threads: int
    server: str
    prompts: int
    processor_time: bool
    rows: list[SideRow] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Written:
    """Tokens, seconds from asking to the first of them, and seconds that writing them took behind the prompt."""

    tokens: list[int]
    first: float
    writing: float


class Server:
    """llama.cpp's `llama-server`: its `/completion` takes and streams token numbers. `clock` counts its seconds."""

    def __init__(self, address: str, clock: Clock = time.perf_counter) -> None:
        if not address.startswith(("http://", "https://")):
            raise InputError(f"{address!r} is no address of a server.", advice="One is http://127.0.0.1:8080.")
        self.address = address.rstrip("/")
        self._clock = clock

    def write(self, prompt: Sequence[int], count: int) -> Written:
        """`count` greedy tokens, or fewer where the model ends the text. Raises EngineError."""
        times = [self._clock()]
        self._ask(prompt, 1)
        times.append(self._clock())
        tokens = self._ask(prompt, count)
        times.append(self._clock())
        first, whole = times[1] - times[0], times[2] - times[1]
        # Behind the first token there are n - 1 of them; as long a time for it, too.
        return Written(tokens, first, max(whole - first, 0.0) * len(tokens) / max(1, len(tokens) - 1))

    def _ask(self, prompt: Sequence[int], count: int) -> list[int]:
        asked = {"prompt": list(prompt), "n_predict": count, "temperature": 0, "top_k": 1, "repeat_penalty": 1.0}
        body = json.dumps(asked | {"cache_prompt": False, "stream": True}).encode()
        request = urllib.request.Request(  # noqa: S310 - http only, see above
            f"{self.address}/completion", body, {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310
                tokens = [token for event in _events(answer) for token in event.get("tokens") or ()]
        except (OSError, ValueError) as error:
            raise EngineError(
                f"The server at {self.address} does not answer as llama.cpp's does: {error}.",
                advice="Start it with: llama-server -m MODEL.gguf -c 4096 --parallel 1 -t 1.",
            ) from None
        if not tokens:
            raise EngineError(f"The server at {self.address} wrote nothing.", advice="It has to stream its tokens.")
        return tokens


def processor_clock(pid: int) -> Clock:
    """Seconds that a process's threads have run, on Linux. Raises InputError where that cannot be read."""

    def seconds() -> float:
        try:
            threads = list(Path(f"/proc/{pid}/task").iterdir())
            return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e9
        except (OSError, ValueError, IndexError):
            raise InputError(f"What the process {pid} has run cannot be read.", advice="Is it the server's?") from None

    seconds()
    return seconds


def bench_against(
    model: Model,
    server: Server,
    policies: Sequence[str],
    *,
    lengths: Sequence[int] = LENGTHS,
    prompts: int = 8,
    max_tokens: int = 64,
    clock: Clock = time.perf_counter,
    advance: Callable[[], None] = lambda: None,
) -> SideReport:
    """One token a pass and `policies`, and the server, in turn; `clock` counts Remask's own seconds.

    Raises InputError or EngineError.
    """
    named = [policy_named(p, model.spec) for p in dict.fromkeys([BASELINE, *policies])]
    decoders = {policy.name: Decoder(model) for policy in named}
    report = SideReport(
        model=model.spec.name,
        dtype=str(model.transformer.dtype).removeprefix("torch."),
        threads=torch.get_num_threads(),
        server=server.address,
        prompts=prompts,
        processor_time=clock is time.process_time,
    )
    for length in lengths:
        runs: dict[str, list[Written]] = {side: [] for side in (*decoders, OTHER)}
        for number, prompt in enumerate(prompts_of(model, length, prompts + 1)):
            done = {p.name: _write(model, decoders[p.name], p, prompt, max_tokens, clock) for p in named}
            done[OTHER] = server.write(prompt, max_tokens)
            for side, written in done.items() if number else ():  # the first passes of a process are slow
                runs[side].append(written)
            advance()
        report.rows += _rows(length, runs)
    return report


def prompts_of(model: Model, length: int, count: int) -> list[list[int]]:
    """`count` prompts of exactly `length` tokens out of Remask's own sources, none starting as another does."""
    holes = sample_holes(count)
    text = "\n\n".join(hole.prefix for hole in sample_holes(len(SOURCES) * 12))
    filler = model.encode(text)
    room = model.spec.shape.max_positions
    if length + 1 >= room or len(filler) < length:
        raise InputError(f"A prompt of {length} tokens is too long for this model or this bench.")
    made = []
    for hole in holes:
        own = model.encode(hole.name + "\n" + hole.prefix)
        made.append((own + filler[: max(0, length - len(own))])[:length])
    return made


def _write(model: Model, decoder: Decoder, policy: Policy, prompt: list[int], count: int, clock: Clock) -> Written:
    """As a server would: the prompt read anew, then `count` tokens; a run for the first token alone before it."""
    endless = StopRules(Reason.BUDGET, "", lambda _: None)

    def run(most: int) -> tuple[Request, float, float]:
        request = Request(Session(model.transformer.new_cache()), policy, Budget(most))
        started = clock()
        decoder.prepare(request, Prompt(prompt))
        read = clock()
        decoder.decode(request, endless)
        return request, read - started, clock() - read

    _, reading, writing = run(1)
    request, _, all_of_it = run(count)
    return Written(request.written or [model.spec.end_ids[0]], reading + writing, all_of_it)


def _rows(length: int, runs: dict[str, list[Written]]) -> Iterator[SideRow]:
    speed = {
        side: sum(len(w.tokens) for w in done) / max(sum(w.writing for w in done), 1e-9) for side, done in runs.items()
    }
    for side, done in runs.items():
        agreed = sum(a.tokens[0] == b.tokens[0] for a, b in zip(done, runs[BASELINE], strict=True))
        yield SideRow(
            length=length,
            side=side,
            tokens=sum(len(w.tokens) for w in done),
            first_ms=round(median(w.first for w in done) * 1000, 1),
            tok_s=round(speed[side], 1),
            ms_per_token=round(1000 / speed[side], 2),
            agreed=round(agreed / len(done), 3),
            ratio=round(speed[side] / speed[OTHER], 2),
        )


def _events(answer: Any) -> Iterator[dict[str, Any]]:
    """The JSON objects of a stream of server-sent events. Raises ValueError for what is none."""
    for line in answer:
        if line.startswith(b"data: ") and line[6:].strip() != b"[DONE]":
            event = json.loads(line[6:])
            if not isinstance(event, dict) or "error" in event:
                raise ValueError(str(event)[:200])
            yield event
