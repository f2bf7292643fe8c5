"""Where the `remask` command starts: nothing is imported before Ctrl-C is caught."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command and exit with its code."""
    try:
        from remask.cli.main import run_command

        code = run_command()
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
