"""`remask doctor`: what is installed, what works, and what to do about each thing that does not."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.text import Text

from remask.cli.options import engine_options, load_engine
from remask.contract.errors import RemaskError
from remask.contract.messages import CompletionRequest, Reason
from remask.contract.places import cache_dir, runtime_dir
from remask.contract.reasons import explain
from remask.grammars import GrammarError, grammars

if TYPE_CHECKING:
    from remask.engine.api import Engine

PACKAGES = ("remask", "torch", "tokenizers", "safetensors", "tree-sitter", "tree-sitter-python", "pygls", "aiohttp")
SELF_TEST = "def add(first, second):\n    return first"
NEOVIM_VERSION = (0, 12)
PATIENCE_MS = 120_000  # a busy machine is no defect of the installation


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. `advice` says what to do where it is not ok; a warning does not fail the command."""

    name: str
    ok: bool
    detail: str
    advice: str = ""
    warning: bool = False


@click.command()
@click.option("--reasons", is_flag=True, help="Also explain the reasons that completions end or stay empty with.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@engine_options
def doctor(reasons: bool, as_json: bool, model: Path | None, adapter: Path | None, device: str, dtype: str) -> int:
    """Check this installation and complete a line with it."""
    checks = []
    for check in run_checks(lambda: load_engine(model, adapter, device, dtype, cache=False)):
        checks.append(check)
        if not as_json:
            _print(check)
    healthy = all(c.ok or c.warning for c in checks)
    if as_json:
        explained = {reason.value: explain(reason) for reason in Reason} if reasons else {}
        click.echo(json.dumps({"ok": healthy, "checks": [asdict(c) for c in checks], "reasons": explained}))
    else:
        click.echo("Everything works." if healthy else "Something needs your attention: see above.")
        if reasons:
            _print_reasons()
    return 0 if healthy else 1


def run_checks(load: Callable[[], Engine]) -> Iterator[Check]:
    """All checks, the slow ones last."""
    yield from (_package(name) for name in PACKAGES)
    yield Check("python", sys.version_info >= (3, 11), sys.version.split()[0], "Remask needs Python 3.11 or newer.")
    yield _languages()
    yield _folder("cache folder", cache_dir)
    yield _folder("socket folder", runtime_dir)
    yield _neovim()
    yield from _engine(load)


def _package(name: str) -> Check:
    try:
        return Check(name, True, version(name))
    except PackageNotFoundError:
        return Check(name, False, "not installed", "Install Remask again with its dependencies (make setup).")


def _languages() -> Check:
    """Each grammar with its parser, which is a package of its own."""
    fit, unfit = [], []
    for grammar in sorted(grammars(), key=lambda g: g.name):
        try:
            _ = grammar.language
            fit.append(grammar.name)
        except GrammarError:
            unfit.append(grammar.name)
    said = ", ".join(fit) + (f"; without a parser: {', '.join(unfit)}" if unfit else "")
    return Check("languages", bool(fit) and not unfit, said, "Install Remask again with its dependencies.")


def _folder(name: str, find: Callable[[], Path]) -> Check:
    try:
        folder = find()
        probe = folder / ".doctor"
        probe.write_bytes(b"x" * 4096)
        probe.unlink()
    except (RemaskError, OSError) as error:
        return Check(name, False, str(error), "Free some space, or set REMASK_CACHE_DIR and REMASK_RUNTIME_DIR.")
    return Check(name, True, f"{folder} ({shutil.disk_usage(folder).free / 1e9:.0f} GB free)")


def _neovim() -> Check:
    """Neovim is one editor of several, so what is missing here is only a warning."""
    path = shutil.which("nvim")
    if path is None:
        return Check("neovim", False, "not found", "Only needed for Neovim; see docs/editors.md.", warning=True)
    try:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, timeout=5, check=False).stdout
        number = tuple(int(part) for part in said.split()[1].lstrip("v").split("-")[0].split(".")[:2])
    except (OSError, subprocess.TimeoutExpired, IndexError, ValueError):
        return Check("neovim", False, "its version cannot be read", "See docs/editors.md.", warning=True)
    fits = number >= NEOVIM_VERSION
    return Check("neovim", fits, said.split("\n")[0], "Inline completion needs 0.12 or newer.", warning=True)


def _engine(load: Callable[[], Engine]) -> Iterator[Check]:
    started = time.monotonic()
    try:
        engine = load()
    except RemaskError as error:
        yield Check("model", False, error.message, error.advice or "Name a whole checkpoint with --model.")
        return
    facts = engine.describe()
    loaded = time.monotonic() - started
    yield Check("model", True, f"{facts['model']}, {facts['dtype']}, loaded in {loaded:.1f} s")
    yield Check("device", True, f"{facts['device']}, {facts['threads']} thread{'' if facts['threads'] == 1 else 's'}")
    yield _native()
    yield _families()
    request = CompletionRequest(
        document="doctor", language="python", prefix=SELF_TEST, suffix="\n", deadline_ms=PATIENCE_MS
    )
    result = engine.complete(request)
    yield Check(
        "self-test",
        result.tokens > 0,
        f"{result.tokens} tokens in {result.forwards} passes, {result.ms.total:.0f} ms: {result.text.strip()!r}",
        "The model writes nothing: the weights do not fit their config.",
    )


def _native() -> Check:
    """Whether int8 runs: elsewhere, as on a GPU, torch computes, so that this is only a warning."""
    from remask.engine.models.native import native_library

    library = native_library()
    if library is not None:
        return Check("int8 on the CPU", True, f"the C pass runs ({library.remask_kind().decode()})")
    advice = "Needs a C compiler, integer dot products and no REMASK_NATIVE=0; see docs/performance.md."
    return Check("int8 on the CPU", False, "the C pass does not run; torch computes", advice, warning=True)


def _families() -> Check:
    """Which published checkpoints fit into this device's free memory."""
    from remask.engine.models.facts import families_that_fit

    fitting = [
        f"{title} {'/'.join(f'{s:g}' for s in sizes)} B" for title, sizes in families_that_fit().items() if sizes
    ]
    return Check("families that fit", bool(fitting), "; ".join(fitting), "Free some memory.", warning=True)


def _print_reasons() -> None:
    console = Console(highlight=False)
    console.print("\nWhy a completion ended, or why there was none:")
    for reason in Reason:
        told = _hanging(explain(reason), console, 20)
        console.print(Text.assemble((f"  {reason.value:<18}", "bold"), told), soft_wrap=True)


def _print(check: Check) -> None:
    mark, style = ("ok", "green") if check.ok else ("--", "yellow") if check.warning else ("!!", "bold red")
    console = Console(highlight=False)
    line = Text.assemble((f" {mark} ", style), (f"{check.name:<20}", "bold"), _hanging(check.detail, console, 24))
    if not check.ok:
        line.append(f"\n{'':<24}{_hanging(check.advice, console, 24)}", style="yellow")
    console.print(line, soft_wrap=True)


def _hanging(text: str, console: Console, indent: int) -> str:
    """The text broken between words, to go on below itself; in a file or a pipe one line. A path stays whole."""
    if not console.is_terminal or console.width < 2 * indent:
        return text
    lines = textwrap.wrap(text, console.width - indent, break_long_words=False, break_on_hyphens=False)
    return f"\n{'':<{indent}}".join(lines)
