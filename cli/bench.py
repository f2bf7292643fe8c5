"""`remask bench`: speed, as ratios within one run."""

from __future__ import annotations

import click

from remask.cli.bench_against import against
from remask.cli.bench_decode import decode
from remask.cli.bench_gpu import bench_gpu_command
from remask.cli.bench_keystroke import keystroke
from remask.cli.bench_pass import bench_kernels_command, bench_pass_command
from remask.cli.bench_server import server


@click.group()
def bench() -> None:
    """Measure speed on this machine."""


bench.add_command(decode)
bench.add_command(against)
bench.add_command(keystroke)
bench.add_command(server)
bench.add_command(bench_pass_command)
bench.add_command(bench_kernels_command)
bench.add_command(bench_gpu_command)
