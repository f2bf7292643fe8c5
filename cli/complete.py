"""`remask complete`: one completion of a file, as JSON or as ghost text in the terminal."""

from __future__ import annotations

import json
from pathlib import Path

import click

from remask.cli.options import engine_options, load_engine
from remask.cli.show import show
from remask.cli.source import Place, Source
from remask.cli.trace import check, write
from remask.contract.errors import InputError
from remask.contract.messages import CompletionRequest, CompletionResult, Extent
from remask.engine.decode.trace import Trace


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--at", "places", multiple=True, metavar="LINE:COL", help="Where to complete; both count from 1.")
@click.option("--language", help="The language, where the file's name does not tell.")
@click.option("--extent", type=click.Choice([e.value for e in Extent]), default="auto", help="One line or a block.")
@click.option("--policy", default="default", help="How to decode: a policy's name, or name:field=value,...")
@click.option("--max-tokens", default=64, type=click.IntRange(1, 4096), help="Tokens to write at most.")
@click.option(
    "--deadline", "deadline_ms", default=10_000, type=click.IntRange(1, 600_000), help="Milliseconds to take at most."
)
@click.option("--candidates", default=1, type=click.IntRange(1, 5), help="Different texts to write; the best first.")
@click.option("--typed", default="", help="Text typed at the position, one completion a keystroke.")
@click.option("--draft", default="", metavar="TEXT", help="What may well stand there: checked, and faster if right.")
@click.option("--guide", default="", metavar="TEXT", help="A wish in words, which the model reads first.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a completion.")
@click.option("--trace", "traced", type=click.Path(path_type=Path), help="A file for every pass, with its source.")
@click.option("--cache/--no-cache", default=True, help="Keep the KV state on disk between calls.")
@engine_options
def complete(
    file: Path,
    places: tuple[str, ...],
    language: str | None,
    extent: str,
    policy: str,
    max_tokens: int,
    deadline_ms: int,
    candidates: int,
    typed: str,
    draft: str,
    guide: str,
    as_json: bool,
    traced: Path | None,
    model: Path | None,
    adapter: Path | None,
    device: str,
    dtype: str,
    cache: bool,
) -> None:
    """Complete FILE at a position."""
    if len(places) != 1:
        raise InputError("Name one position with --at LINE:COL." if not places else "--at is given more than once.")
    if traced is not None:
        check(traced)
    source = Source.read(file, Place.parse(places[0]), language)
    requests = [
        CompletionRequest(
            document=file.resolve().as_uri(),
            language=source.language,
            prefix=source.prefix + typed[:count],
            suffix=source.suffix,
            extent=Extent(extent),
            policy=policy,
            max_tokens=max_tokens,
            deadline_ms=deadline_ms,
            candidates=candidates,
            draft=draft,
            guide=guide,
        )
        for count in range(len(typed) + 1)
    ]
    engine = load_engine(model, adapter, device, dtype, cache)
    records = []
    for request in requests:
        trace = Trace() if traced is not None else None
        result = engine.complete(request, trace=trace)
        if trace is not None:
            records.append(trace.record(request, result))
        if as_json:
            click.echo(json.dumps(as_output(request, result)))
        else:
            show(request, result)
    engine.close()
    if traced is not None:
        write(traced, records)
    if engine.storage_warning is not None:
        raise engine.storage_warning


def as_output(request: CompletionRequest, result: CompletionResult) -> dict[str, object]:
    """The JSON contract of `remask complete`. `range` is the empty span at the cursor, counted from 1."""
    before = request.prefix.rpartition("\n")[2]
    at = {"line": request.prefix.count("\n") + 1, "column": len(before) + 1}
    values = result.to_dict()
    order = ("text", "range", "reason", "language", "tokens", "forwards", "prompt", "ms", "model", "policy", "detail")
    values["range"] = {"start": at, "end": at}
    return {name: values[name] for name in (*order, "names", "others")}
