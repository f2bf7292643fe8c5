"""Start the language server on standard input and output: `python -m remask.lsp_server`."""

from remask.lsp_server.server import main

if __name__ == "__main__":
    main()
