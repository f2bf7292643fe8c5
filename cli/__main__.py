"""`python -m remask.cli` is the `remask` command."""

from remask.cli.entry import main

main()
