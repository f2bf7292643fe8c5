"""The `remask` command: its sub-commands, and how every failure ends, as one sentence on stderr.

Sub-commands import what they need when they run: `remask --help` and `remask lsp` load no torch.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Sequence

import click

from remask.cli.bench import bench
from remask.cli.complete import complete
from remask.cli.doctor import doctor
from remask.cli.evaluate import evaluate
from remask.cli.model import model
from remask.cli.stats import stats
from remask.cli.trace import trace
from remask.cli.train import train
from remask.contract.errors import RemaskError

INTERRUPTED = 130  # the shell's code for Ctrl-C


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.version_option(package_name="remask", prog_name="remask")
def remask() -> None:
    """Write code in parallel, with a model on your own machine."""


@remask.command()
@click.option("--model", type=click.Path(), help="A checkpoint folder instead of the default model.")
@click.option("--adapter", type=click.Path(), help="A folder with a LoRA adapter for it.")
@click.option("--device", default="auto", help="auto, cpu or cuda.")
@click.option("--dtype", default="auto", help="auto, int8, fp8, float32 or bfloat16.")
def lsp(model: str | None, adapter: str | None, device: str, dtype: str) -> None:
    """Serve an editor over standard input and output."""
    from remask.cli.lsp import run

    run(model=model, adapter=adapter, device=device, dtype=dtype)


remask.add_command(complete)
remask.add_command(model)
remask.add_command(doctor)
remask.add_command(evaluate)
remask.add_command(train)
remask.add_command(bench)
remask.add_command(stats)
remask.add_command(trace)


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; no exception but a defect of Remask's own leaves it."""
    try:
        _prepare_output()
        code = remask.main(args=arguments, prog_name="remask", standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except RemaskError as error:
        return _fail(str(error), error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.ctx.get_help())
        return 0
    except click.ClickException as error:
        sentence = error.format_message().rstrip(".")
        where = getattr(error, "ctx", None)  # usage errors know the command that they are about
        command = where.command_path if where is not None else "remask"
        return _fail(f"{sentence}{'' if sentence.endswith('?') else '.'} Try '{command} --help'.", 2)
    except (click.Abort, KeyboardInterrupt):
        return _fail("Interrupted.", INTERRUPTED)
    except BrokenPipeError:
        _silence_stdout()
        return 0
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
        _silence_stdout()
        return _fail(f"The output cannot be written: {error.strerror}.", 5)
    except Exception as error:
        if os.environ.get("REMASK_DEBUG"):
            raise
        return _fail(
            f"A defect of Remask stopped it ({type(error).__name__}: {error}). REMASK_DEBUG=1 shows where.", 70
        )


def _prepare_output() -> None:
    """A closed or narrow output must not become an error of its own: what it cannot show is replaced."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - lives as long as the process
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _fail(sentence: str, code: int) -> int:
    if sys.stderr is not None:
        print(f"remask: {' '.join(sentence.split())}", file=sys.stderr)
    return code


def _silence_stdout() -> None:
    """Nothing more reaches the reader; the interpreter must not try again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
