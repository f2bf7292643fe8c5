"""Owns the model. Knows tokens and text, never LSP. Importing this package alone loads no torch."""
