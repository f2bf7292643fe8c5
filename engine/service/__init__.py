"""The engine as a process of its own: HTTP on a local socket. Knows the engine's one call, never LSP."""
