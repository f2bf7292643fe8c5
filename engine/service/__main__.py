"""Start the engine process: `python -m remask.engine.service --socket PATH`. Imports no torch before it must."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path

from remask.engine.service.completer import Completer
from remask.engine.service.process import leave, serve


def main(arguments: Sequence[str] | None = None) -> int:
    """Read the arguments, load the engine and serve it; returns the exit code."""
    options = _parse(arguments)
    logging.basicConfig(level=logging.WARNING, format="remask engine: %(levelname)s: %(message)s")

    def load() -> Completer:
        from remask.engine.api import Engine, EngineOptions
        from remask.engine.control.steering import Steer

        given = EngineOptions(
            model=options.model,
            adapter=options.adapter,
            steer=tuple(Steer.parse(text) for text in options.steer),
            device=options.device,
            dtype=options.dtype,
        )
        return Engine.load(given)

    return serve(options.socket, load, options.shared_as)


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m remask.engine.service",
        description="Serve one model on a local socket until standard input ends.",
    )
    parser.add_argument("--socket", type=Path, required=True, help="where to listen")
    parser.add_argument("--shared-as", type=Path, help="a file that tells others of it; removed at its end")
    parser.add_argument("--model", type=Path, help="a checkpoint's folder (default: the one that ships with Remask)")
    parser.add_argument("--adapter", type=Path, help="a folder with a LoRA adapter that is merged into it")
    parser.add_argument("--steer", action="append", default=[], help="a steering vector: its file, or FILE:strength")
    parser.add_argument("--device", default="auto", help="cpu, cuda or auto")
    parser.add_argument("--dtype", default="auto", help="int8, float32, bfloat16 or auto")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    leave(main())
