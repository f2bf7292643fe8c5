"""`remask lsp`: the language server on standard input and output. Knows nothing of what it serves."""

from __future__ import annotations


def run() -> None:
    """Serve the editor until it leaves; ends the process. The client's options come with `initialize`."""
    from remask.lsp_server.server import main  # LSP's types take half a second to load

    main()
