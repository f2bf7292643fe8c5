"""One file a feature of the language server."""
