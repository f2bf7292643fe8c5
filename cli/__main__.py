"""`python -m remask.cli` is the `remask` command."""

from remask.cli.main import main

main()
