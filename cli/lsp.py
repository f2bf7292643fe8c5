"""`remask lsp`: the language server on standard input and output. Knows nothing of what it serves."""

from __future__ import annotations

from pathlib import Path


def run(*, model: str | None = None, adapter: str | None = None, device: str = "auto", dtype: str = "auto") -> None:
    """Serve the editor until it leaves; ends the process. The client's own options go before these."""
    from remask.lsp_server.options import ServerOptions
    from remask.lsp_server.server import RemaskServer, main  # LSP's types take half a second to load

    defaults = ServerOptions(model=_folder(model), adapter=_folder(adapter), device=device, dtype=dtype)
    main(lambda: RemaskServer(defaults=defaults))


def _folder(path: str | None) -> Path | None:
    return Path(path).expanduser() if path else None
