"""What a keystroke costs: with the session of the keystroke before it, with one from a lower tier, and with none.

Types Remask's own sources into the engine's one call, with the prompt's window opened to the context that is wanted.
Knows texts and the engine; knows no editor.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Any

from remask.contract.errors import InputError
from remask.contract.messages import CompletionRequest, CompletionResult
from remask.engine.api import Engine
from remask.engine.evaluation.bench import source_files
from remask.engine.evaluation.infilling import describe
from remask.engine.evaluation.shapes import SHAPES, random_transformer
from remask.engine.models.checkpoint import read_tokenizer
from remask.engine.models.choice import find_model
from remask.engine.models.model import Model, choose_device, choose_dtype
from remask.engine.models.processor import set_threads
from remask.engine.models.read_spec import read_spec
from remask.engine.store import DiskStore
from remask.engine.tiers import HOST_BUDGET_BYTES

Timed = tuple[CompletionResult, float]

DOCUMENT = "keystroke.py"
CONTEXTS = (2048, 8192)
DEADLINE_MS = 600_000
LEAST = 256  # tokens of a context beside what is written


@dataclass(frozen=True, slots=True)
class Row:
    """Medians of `n` completions at one context.

    start: "cold" (nothing was read before), "warm" (the keystroke before was), "host" (the session had left the device
    for host memory), "reopened" (a new engine finds it on disk). tokens: of the prompt; run: those of them that a pass
    had to read; mb: of the session's keys and values. Milliseconds: prompt_ms up to the first decoding pass, total_ms
    to the completion; processor_ms is what this process itself used for all of it, which other programs disturb less.
    """

    context: int
    start: str
    n: int
    tokens: int
    run: int
    prompt_ms: float
    decode_ms: float
    total_ms: float
    processor_ms: float
    mb: float


@dataclass(slots=True)
class Report:
    """What `remask bench keystroke` prints. disk_mb: the largest session on disk."""

    model: str
    dtype: str
    device: str
    threads: int
    random_weights: bool
    max_tokens: int
    disk_mb: float = 0.0
    rows: list[Row] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Typing:
    """A text in the making: `typed` comes behind `prefix`, character by character."""

    prefix: str
    typed: str
    suffix: str

    def request(self, keys: int, max_tokens: int) -> CompletionRequest:
        """What is asked for after so many keystrokes."""
        prefix = self.prefix + self.typed[:keys]
        return CompletionRequest(
            document=DOCUMENT,
            language="python",
            prefix=prefix,
            suffix=self.suffix,
            max_tokens=max_tokens,
            deadline_ms=DEADLINE_MS,
        )


def random_model(shape: str, device: str, dtype: str) -> Model:
    """Random weights of a published shape behind the default model's tokenizer. Raises InputError or ModelError."""
    folder, where = find_model(None), choose_device(device)
    tokenizer = read_tokenizer(folder)
    set_threads()
    transformer = random_transformer(shape, choose_dtype(dtype, where), where)
    spec = replace(read_spec(folder, tokenizer), name=shape, shape=SHAPES[shape])
    return Model(spec, tokenizer, transformer, f"random-{shape}-{transformer.dtype}")


def bench_keystroke(
    model: Model,
    folder: Path,
    *,
    contexts: Sequence[int] = CONTEXTS,
    keys: int = 12,
    colds: int = 3,
    max_tokens: int = 16,
    random_weights: bool = False,
    advance: Callable[[], None] = lambda: None,
) -> Report:
    """Type `keys` characters at every context; `folder` takes the sessions on disk.

    Raises InputError for a context that the model does not know or the sources do not fill.
    """
    report = Report(**describe(model), random_weights=random_weights, max_tokens=max_tokens)
    texts = {context: _typing(model, context, keys, max_tokens) for context in contexts}
    Engine(model).complete(Typing("a = ", "", "\n").request(0, 2))  # the first passes of a process are slow
    for context, typing in texts.items():
        opened = replace(model, spec=replace(model.spec, prefix_tokens=2 * context))
        place = folder / str(context)
        store = DiskStore(model.fingerprint, place)
        report.rows += _at(opened, store, context, typing, colds, max_tokens, advance)
        store.close()
        report.disk_mb = max(report.disk_mb, round(_bytes(place) / 1e6, 1))
    return report


def steps(contexts: Sequence[int], keys: int, colds: int) -> int:
    """How often `bench_keystroke` advances."""
    return len(contexts) * (keys + 3 * colds)


def _at(
    model: Model,
    store: DiskStore,
    context: int,
    typing: Typing,
    colds: int,
    max_tokens: int,
    advance: Callable[[], None],
) -> list[Row]:
    keys = len(typing.typed)

    def done(engine: Engine, typed: int) -> Timed:
        started = time.process_time()
        result = engine.complete(typing.request(typed, max_tokens))
        advance()
        return result, (time.process_time() - started) * 1000

    engine = Engine(model, store, host_budget=HOST_BUDGET_BYTES)
    timed: dict[str, list[Timed]] = {"cold": [], "warm": [], "host": [], "reopened": []}
    for _ in range(colds):
        engine.forget(DOCUMENT)
        timed["cold"].append(done(engine, 0))
    timed["warm"] = [done(engine, typed) for typed in range(1, keys + 1)]
    for _ in range(colds):
        engine.leave(DOCUMENT)
        timed["host"].append(done(engine, keys))
    engine.close()
    for _ in range(colds):
        timed["reopened"].append(done(Engine(model, store), keys))
    shape, width = model.spec.shape, model.transformer.new_cache().dtype.itemsize
    token = 2 * shape.layers * shape.kv_heads * shape.head_dim * width  # bytes
    return [_row(context, start, runs, token) for start, runs in timed.items()]


def _row(context: int, start: str, timed: Sequence[Timed], token_bytes: int) -> Row:
    results = [result for result, _ in timed]
    return Row(
        context=context,
        start=start,
        n=len(results),
        tokens=round(median(r.prompt.total for r in results)),
        run=round(median(r.prompt.run for r in results)),
        prompt_ms=round(median(r.ms.prompt for r in results), 1),
        decode_ms=round(median(r.ms.decode for r in results), 1),
        total_ms=round(median(r.ms.total for r in results), 1),
        processor_ms=round(median(ms for _, ms in timed), 1),
        mb=round(median(r.prompt.total for r in results) * token_bytes / 1e6, 1),
    )


def _typing(model: Model, context: int, keys: int, max_tokens: int) -> Typing:
    """Sources up to the context, less what is written and the suffix; `keys` characters more are typed."""
    spec = model.spec
    longest = spec.shape.max_positions
    if not LEAST + spec.suffix_tokens + max_tokens < context <= longest:
        least = LEAST + spec.suffix_tokens + max_tokens
        raise InputError(f"A context of {context} tokens is not between {least} and the model's {longest}.")
    room = context - spec.suffix_tokens - max_tokens - 2 * spec.block_size - keys - 8  # 8: marks, tokens that split
    text = "\n\n".join(text for _, text in source_files())
    ids = model.encode(text)
    if len(ids) < room + keys:
        raise InputError(f"Remask's own sources have {len(ids)} tokens, too few for a context of {context}.")
    start = len(model.decode(ids[:room]))
    rest = text.find("\n", start + keys)
    return Typing(text[:start], text[start : start + keys], text[rest:])


def _bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
